#pragma once
// What a recipe or the command line may say about evaluation tasks.

#include <cstdint>
#include <string>
#include <vector>

namespace retort::tasks {

struct TaskOptions {
  std::vector<std::string> files = {};  ///< YAML files of tasks
  std::string data = {};                ///< directory with data sets of the Hugging Face Hub; empty: none
  std::int64_t num_fewshot = -1;        ///< examples before each question; -1: as the files say
  std::int64_t limit = 0;               ///< documents of each task, the first ones; 0: all
  bool chat = false;                    ///< questions are written as the model's chat template has it
  bool multiturn = true;                ///< in a chat, examples are turns of their own
  std::string system = {};  ///< what stands before the description; in a chat the system's message
};

}  // namespace retort::tasks
