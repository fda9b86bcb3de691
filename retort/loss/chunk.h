#pragma once
// The losses on logits of a chunk of rows.  Kernels compute those that they know, all in one visit to the
// logits.  The others are computed by their own mathematics, a few rows at a time.
//
// Shape legend: N rows of the chunk, V vocabulary of the student, L losses.

#include "retort/loss/logit_loss.h"
#include "retort/ops/path.h"

namespace retort::loss {

/// Who computes a loss that kernels know.
enum class Computed {
  in_kernels,      ///< the kernels, where the path has them
  by_composition,  ///< the loss itself, as tests ask
};

/// For each loss the sum over rows that count, in nats, without its weight: float64 [L] on the device of the
/// logits, which is not waited for.  Writes the gradient of the weighted sum over step_targets to grad_NV,
/// and zeros where nothing counts; grad_NV may be chunk.student_RV itself.  Logits have the compute type and
/// dense rows.  float32 statistics, float64 of float64; on a CPU the same bits for any number of threads.
at::Tensor losses_of_chunk(const LogitLosses& losses, const LogitRows& chunk, double step_targets,
                           at::Tensor grad_NV, Computed computed = Computed::in_kernels);

/// Matrices of a few rows that losses_of_chunk holds beside its arguments; 0 where kernels compute all.
std::int64_t composed_matrices(const LogitLosses& losses, ops::Path path, std::int64_t item_bytes,
                               Computed computed = Computed::in_kernels);

/// Bytes of so many such matrices, of a chunk of `rows` rows.
std::int64_t composed_bytes(std::int64_t matrices, ops::Path path, std::int64_t rows, std::int64_t vocab,
                            std::int64_t item_bytes);

}  // namespace retort::loss
