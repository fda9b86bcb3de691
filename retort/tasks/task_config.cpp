#include "retort/tasks/task_config.h"

#include <algorithm>

#include "retort/tasks/task_file.h"

namespace retort::tasks {
namespace {

using base::Json;

Json fewshot_of(const Task& task) {
  const FewShotOptions& fewshot = task.fewshot;
  const auto or_null = [](const auto& optional) { return optional ? Json(*optional) : Json(); };
  return {{"sampler", fewshot.sampler == Sampler::first_n ? "first_n" : "default"},
          {"split", or_null(fewshot.split)},
          {"process_docs", nullptr},
          {"fewshot_indices", nullptr},
          {"samples", or_null(fewshot.samples)},
          {"doc_to_text", fewshot.doc_to_text.written()},
          {"doc_to_choice", fewshot.doc_to_choice.written()},
          {"doc_to_target", fewshot.doc_to_target.written()},
          {"gen_prefix", fewshot.gen_prefix.written()},
          {"fewshot_delimiter", fewshot.fewshot_delimiter},
          {"target_delimiter", fewshot.target_delimiter}};
}

Json generation_of(const Task& task, Json given) {
  if (given.is_null())
    return {{"temperature", 0.0},
            {"do_sample", false},
            {"max_gen_toks", task.generation.max_tokens},
            {"until", task.generation.until}};
  if (given.contains("temperature") && given["temperature"].is_number())
    given["temperature"] = given["temperature"].get<double>();
  if (!given.contains("until")) given["until"] = task.generation.until;
  return given;
}

}  // namespace

std::vector<std::string> config_keys() {
  return {"task",
          "task_alias",
          "dataset_path",
          "dataset_name",
          "dataset_kwargs",
          "training_split",
          "validation_split",
          "test_split",
          "fewshot_split",
          "doc_to_text",
          "doc_to_target",
          "unsafe_code",
          "doc_to_choice",
          "description",
          "target_delimiter",
          "fewshot_delimiter",
          "fewshot_config",
          "num_fewshot",
          "metric_list",
          "output_type",
          "generation_kwargs",
          "repeats",
          "filter_list",
          "should_decontaminate",
          "doc_to_decontamination_query",
          "gen_prefix",
          "metadata"};
}

Json config_of(const Task& task, const io::YamlValue& root) {
  Json config = Json::object();
  for (const auto& name : config_keys()) {
    const auto* value = root.find(name);
    Json read = value == nullptr ? Json() : resolved(*value);
    if (name == "fewshot_config") read = fewshot_of(task);
    if (name == "generation_kwargs" && (task.output_type == OutputType::generate_until || !read.is_null()))
      read = generation_of(task, std::move(read));
    if (read.is_null() && (name == "unsafe_code" || name == "should_decontaminate")) read = false;
    if (read.is_null() && name == "description") read = "";
    if (read.is_null() && name == "target_delimiter") read = task.target_delimiter;
    if (read.is_null() && name == "fewshot_delimiter") read = task.fewshot_delimiter;
    if (read.is_null() && name == "output_type") read = base::word(task.output_type);
    if (read.is_null() && name == "repeats") read = 1;
    if (!read.is_null()) config[name] = std::move(read);
  }
  return config;
}

}  // namespace retort::tasks
