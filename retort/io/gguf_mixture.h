#pragma once
// Which type each tensor of a GGUF file has.  A file is called after the type of most of its weights; some
// that err more get a finer one, and norms and biases stay F32. The rules are those of llama.cpp's
// llama-quant.cpp without an importance matrix.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "retort/io/gguf_blocks.h"

namespace retort::io {

enum class GgufMixture { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k_s, q4_k_m, q5_k_s, q5_k_m, q6_k };

/// "q4_k_m", in any case; empty for one that is not written.
std::optional<GgufMixture> parse_gguf_mixture(std::string_view text);
/// "Q4_K_M"
std::string_view name(GgufMixture mixture);
/// All names, for messages: "F32, F16, ..."
std::string gguf_mixture_names();
/// The number of general.file_type in a file's metadata.
std::uint32_t file_type(GgufMixture mixture);

/// What the choice asks of a model.  Each block has attention and an MLP.
struct MixtureModel {
  std::string_view architecture;  ///< general.architecture: "llama", "qwen2", ...
  std::int64_t blocks = 0;
  std::int64_t heads = 0, kv_heads = 0;
  bool tied = false;  ///< no output.weight: token_embd.weight is the head, too
};

/// The type, or where rows of so many values are no whole blocks of it the next finer one whose blocks they
/// are, at last F16.
GgmlType fitting_type(GgmlType type, std::int64_t row);

/// The type of a tensor with this name ("blk.0.attn_v.weight") and shape, of which the last extent is a
/// row's; one that fits its rows.  Throws InternalError for the name of a block that the model does not have.
GgmlType type_in_mixture(GgufMixture mixture, const MixtureModel& model, std::string_view name,
                         std::span<const std::int64_t> shape);

}  // namespace retort::io
