#pragma once
// Names of tensors in GGUF files and in those of Hugging Face.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "retort/io/gguf_architecture.h"

namespace retort::io {

/// The name in Hugging Face's files; a tensor that they do not have keeps its own, by which it is refused.
std::string hugging_face_name(const GgufArchitecture& architecture, std::string_view name);
/// The name in a GGUF file of this architecture; nothing where that has no such tensor.
std::optional<std::string> gguf_name(const GgufArchitecture& architecture, std::string_view hugging_face);

/// The number N of a name in a GGUF file that begins with "blk.N."; nothing for another one.
std::optional<std::uint32_t> gguf_block(std::string_view name);

/// general.name of a model that is called `name`.  In a model with "phi-3" in its name llama.cpp takes the
/// spaces behind special tokens away, as the tokenizer of Phi-3 does, and wants four tokens of it.
std::string gguf_model_name(const GgufArchitecture& architecture, const std::string& name,
                            const std::function<bool(std::string_view)>& has_token);

}  // namespace retort::io
