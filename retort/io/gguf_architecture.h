#pragma once
// The architectures of GGUF files that are read, under the names of llama.cpp.

#include <array>
#include <cstdint>
#include <string_view>

namespace retort::io {

struct GgufArchitecture {
  std::string_view name;  ///< general.architecture; the prefix of its keys
  std::string_view hugging_face;
  const char* model_type;
  std::string_view also = {};      ///< another class of Hugging Face that it is written for
  std::string_view by_block = {};  ///< the architecture that computes the same with blocks of several sizes
  bool is_by_block = false;        ///< its heads and channels are lists, with 0 for a half that is not there
  bool rows_reordered = false;     ///< llama.cpp's converter changes the order of query and key rows
  bool norms_plus_one = false;     ///< files hold 1 + w of a norm, Hugging Face w
  bool norms_around = false;       ///< each half of a block has a norm before and one after it
  bool fused = false;              ///< q, k, v are one matrix, gate and up another
  bool soft_caps = false;          ///< of scores and of logits; llama.cpp divides by both
  bool final_cap = false;          ///< of logits, where there is one
  bool says_no_window = false;     ///< a window of 0: earlier versions of llama.cpp wanted the key
  bool heads_span_hidden = false;  ///< no other number of query heads loads in llama.cpp
  /// Scores are divided by the root of the width of a head, in a model of so many blocks by that of hidden
  /// size by heads; 0: the file's family does not say it.
  std::int64_t blocks_of_largest = 0;
  /// Each so-manieth block sees everything and the others a window, where the file has no list; 0: none has
  /// one.
  std::int64_t window_pattern = 0;
};

inline constexpr std::array<GgufArchitecture, 7> kGgufArchitectures{
    {{.name = "llama",
      .hugging_face = "LlamaForCausalLM",
      .model_type = "llama",
      .also = "MistralForCausalLM",
      .by_block = "deci",
      .rows_reordered = true},
     {.name = "qwen2", .hugging_face = "Qwen2ForCausalLM", .model_type = "qwen2", .heads_span_hidden = true},
     {.name = "qwen3", .hugging_face = "Qwen3ForCausalLM", .model_type = "qwen3"},
     {.name = "phi3",
      .hugging_face = "Phi3ForCausalLM",
      .model_type = "phi3",
      .fused = true,
      .says_no_window = true,
      .heads_span_hidden = true},
     {.name = "gemma2",
      .hugging_face = "Gemma2ForCausalLM",
      .model_type = "gemma2",
      .norms_plus_one = true,
      .norms_around = true,
      .soft_caps = true,
      .blocks_of_largest = 46,
      .window_pattern = 2},
     {.name = "gemma3",
      .hugging_face = "Gemma3ForCausalLM",
      .model_type = "gemma3_text",
      .norms_plus_one = true,
      .norms_around = true,
      .final_cap = true,
      .blocks_of_largest = 62,
      .window_pattern = 6},
     {.name = "deci",
      .hugging_face = "RetortForCausalLM",
      .model_type = "llama",
      .is_by_block = true,
      .rows_reordered = true}}};

}  // namespace retort::io
