#pragma once
// What an operation has to move and to compute at least: every operand is read once, every result written
// once, and the operations of products are counted.  These are formulas, nothing is measured.
//
// `item_bytes` belongs to an element of the compute type; statistics and tables are float32.

#include <cstdint>

#include "retort/architecture/config.h"

namespace retort::bench {

struct Work {
  double bytes = 0;    ///< read and written
  double flops = 0;    ///< 0: memory alone limits it
  double written = 0;  ///< of the bytes
};

/// x and w in, y and 1/rms out.
Work rms_norm_work(std::int64_t tokens, std::int64_t hidden, std::int64_t item_bytes);
/// Gradient, x, residual, w and 1/rms in, gradient of x out; the gradient of w in and out.
Work rms_norm_backward_work(std::int64_t tokens, std::int64_t hidden, std::int64_t item_bytes);
/// Queries and keys in and out, two tables of half a head in.
Work rotary_work(const architecture::Attention& shape, std::int64_t tokens, std::int64_t item_bytes);
/// Gate and up in, their product out.
Work swiglu_work(std::int64_t tokens, std::int64_t width, std::int64_t item_bytes);
/// Gradient, gate and up in, the gradients of both and the product out.
Work swiglu_backward_work(std::int64_t tokens, std::int64_t width, std::int64_t item_bytes);

/// 4 E operations for each head and each pair of a token with one before it or itself, in one sequence.
Work attention_work(const architecture::Attention& shape, std::int64_t tokens);
/// 10 E operations: scores again, and four gradients.
Work attention_backward_work(const architecture::Attention& shape, std::int64_t tokens);
/// One new token: the keys and values of `tokens` in.
Work paged_attention_work(const architecture::Attention& shape, std::int64_t tokens, std::int64_t item_bytes);

/// Logits in, their gradient out.
Work cross_entropy_work(std::int64_t rows, std::int64_t vocab, std::int64_t item_bytes);
/// Logits of both models in, the gradient out.
Work kl_divergence_work(std::int64_t rows, std::int64_t vocab, std::int64_t item_bytes);
/// Parameter and two moments in and out, the gradient in, all float32; a copy in bfloat16 out where the model
/// computes in it.
Work adamw_work(std::int64_t parameters, std::int64_t item_bytes);
/// One token times a weight [rows, columns].
Work decode_product_work(std::int64_t rows, std::int64_t columns, std::int64_t item_bytes);
}  // namespace retort::bench
