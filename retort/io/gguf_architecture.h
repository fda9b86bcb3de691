#pragma once
// The architectures of GGUF files that are read, under the names of llama.cpp.

#include <array>
#include <string_view>

namespace retort::io {

struct GgufArchitecture {
  std::string_view name;  ///< general.architecture; the prefix of its keys
  const char* hugging_face;
  const char* model_type;
  bool rows_reordered;  ///< llama.cpp's converter changes the order of query and key rows
};

inline constexpr std::array<GgufArchitecture, 3> kGgufArchitectures{
    {{"llama", "LlamaForCausalLM", "llama", true},
     {"qwen2", "Qwen2ForCausalLM", "qwen2", false},
     {"qwen3", "Qwen3ForCausalLM", "qwen3", false}}};

}  // namespace retort::io
