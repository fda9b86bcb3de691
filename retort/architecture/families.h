#pragma once
// The families of decoders that are read and written, a row each: names, what a configuration means where it
// is silent, and which shapes it can say.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "retort/architecture/config.h"
#include "retort/base/json.h"

namespace retort::architecture {

/// What a decoder computes, given its sizes.
enum class Mathematics {
  llama,  ///< RMSNorm before both halves of a block, whole heads rotated, SwiGLU, no biases
};

struct Family {
  struct Names {
    const char* architecture;  ///< "LlamaForCausalLM"
    const char* model_type;    ///< "llama"
  };
  /// What absent keys of config.json mean.
  struct Reading {
    std::int64_t default_kv_heads;               ///< 0: as many as heads
    std::optional<std::int64_t> default_window;  ///< nothing: attention without a window
  };
  struct Writing {
    /// Whether config.json of this family may say such a block; transformers refuses some.
    bool (*can_say)(const Block& block, std::int64_t hidden_size);
    /// Keys that no other family has.
    void (*add_keys)(base::Json& config);
  };

  Names names;
  Mathematics mathematics;
  Reading reading;
  Writing writing;
};

std::span<const Family> families();

/// "LlamaForCausalLM, MistralForCausalLM": for messages.
std::string supported_architectures();

/// The family of an architecture; throws ModelError for one that is not in the table.
const Family& family_of(std::string_view architecture);

/// The family in whose name a uniform configuration is written: its own, or the first with the same
/// mathematics that can say its shape.  Throws ModelError when there is none.
const Family& written_family(const Config& config);

}  // namespace retort::architecture
