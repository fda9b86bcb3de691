#pragma once
// The bytes that an operation holds beside its arguments and its results, by path: what a memory plan adds
// up. The loops of kernels/cpu/ hold next to nothing, but for the tiles of attention, which each thread has.
// The compositions of kernels/device/ hold temporaries of a piece of rows, whatever the number of rows.
//
// `item_bytes` belongs to an element of the compute type.

#include <cstdint>

#include "retort/ops/path.h"

namespace retort::ops {

/// What the library holds for its products.  On accelerators it is kept from the first one on: 32 MiB of
/// cuBLAS from Hopper on, less before.  On a CPU it is kWidenedBytes where bfloat16 is not multiplied whole.
std::int64_t product_work_bytes(Path path, std::int64_t item_bytes);

/// Of rms_norm and its backward, of which the latter holds more.
std::int64_t rms_norm_work_bytes(Path path, std::int64_t rows, std::int64_t dim, std::int64_t item_bytes);

/// Of apply_rotary to heads of `width` elements together.
std::int64_t rotary_work_bytes(Path path, std::int64_t rows, std::int64_t width, std::int64_t item_bytes);

std::int64_t swiglu_backward_work_bytes(Path path, std::int64_t rows, std::int64_t width,
                                        std::int64_t item_bytes);

/// Elements per token of the longest segment.
struct AttentionSizes {
  std::int64_t segment = 0;  ///< tokens of it
  std::int64_t tokens = 0;   ///< of all segments together
  std::int64_t heads = 0;
  std::int64_t queries = 0;  ///< of all heads together
  std::int64_t keys = 0;     ///< of all heads of keys; as many of values
  std::int64_t window = 0;   ///< as in ScoreRule
  bool capped = false;       ///< scores have a soft cap
};
std::int64_t attention_work_bytes(Path path, const AttentionSizes& sizes, std::int64_t item_bytes);
std::int64_t attention_backward_work_bytes(Path path, const AttentionSizes& sizes, std::int64_t item_bytes);

/// Of score_chunk, whose logits are float32 at least.
std::int64_t score_work_bytes(Path path, std::int64_t rows, std::int64_t vocab, std::int64_t item_bytes,
                              bool teacher);

/// Of attention_of_end to `sizes.segment` tokens.
std::int64_t attention_of_end_work_bytes(Path path, const AttentionSizes& sizes, std::int64_t item_bytes);

/// Of accumulate to a float32 matrix, or wider.
std::int64_t accumulate_work_bytes(Path path, std::int64_t rows, std::int64_t columns,
                                   std::int64_t item_bytes);

/// Of add_transposed_product of `inner` rows to a float32 matrix [rows, columns].
std::int64_t add_transposed_product_work_bytes(Path path, std::int64_t inner, std::int64_t rows,
                                               std::int64_t columns, std::int64_t item_bytes);

/// Of adamw_ over a range, and of sum_of_squares.
std::int64_t optimizer_work_bytes(Path path, std::int64_t count);

}  // namespace retort::ops
