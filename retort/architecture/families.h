#pragma once
// The families of decoders that are read and written.

#include <span>
#include <string>
#include <string_view>

#include "retort/architecture/family.h"

namespace retort::architecture {

std::span<const Family* const> families();

/// Of which only the language part is read.
std::span<const Wrapper> wrappers();

/// "LlamaForCausalLM, MistralForCausalLM": for messages.
std::string supported_architectures();

/// The family of an architecture; throws ModelError for one that is not in the table.
const Family& family_of(std::string_view architecture);

/// How a configuration is written.
struct WrittenForm {
  const Family* family = nullptr;  ///< whose mathematics it is
  bool is_own = false;             ///< in Retort's own form; else as that family's class in transformers
};

/// Blocks that are alike in the name of the model's own family, or the first that says the same in the same
/// tensors and may have its shape; blocks that differ, and shapes that no class takes, in Retort's own form.
/// Throws ModelError where not even that says it.
WrittenForm written_form(const Config& config);
/// The family by whose class transformers loads it, whose blocks are alike.  Throws ModelError when there is
/// none.
const Family& stock_family(const Config& config);

}  // namespace retort::architecture
