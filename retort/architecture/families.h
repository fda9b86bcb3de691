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

/// The family in whose name a configuration is written: its own, or the first that says the same in the same
/// tensors and may have its shape.  Throws ModelError when there is none.
const Family& written_family(const Config& config);

}  // namespace retort::architecture
