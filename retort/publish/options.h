#pragma once
// What a recipe or the command line may say about handing a model out.

#include <cstdint>
#include <string>

#include "retort/base/words.h"

namespace retort::publish {

/// The program that is to load a model.
enum class Program { transformers, vllm, llama_cpp, ollama };
constexpr auto words_of(Program) {
  return base::words<Program::ollama>("transformers", "vllm", "llama.cpp", "ollama");
}
/// Whether it loads GGUF files; the others load directories of Hugging Face.
constexpr bool takes_gguf(Program program) {
  return program == Program::llama_cpp || program == Program::ollama;
}

struct ExportOptions {
  Program program = Program::llama_cpp;
  std::string type = {};            ///< of a GGUF file's matrices; empty: that of the model's weights
  std::string like = {};            ///< a GGUF file whose tensors' types are taken; empty: none
  std::int64_t max_part_bytes = 0;  ///< of the tensors in a part of a GGUF file; 0: it is one file
};

}  // namespace retort::publish
