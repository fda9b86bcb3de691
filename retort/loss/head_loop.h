#pragma once
// Final norm, head product and the losses on logits, in chunks of rows: no tokens x vocabulary tensor ever
// exists.
//
// Shape legend: N tokens of a micro-batch, D hidden, F hidden of the teacher, V vocabulary, R rows of a
// chunk.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "retort/loss/losses.h"
#include "retort/model/head.h"
#include "retort/ops/path.h"

namespace retort::loss {

/// One side of the head loop.
struct HeadSide {
  model::HeadWeights weights;
  double eps = 0;
  at::Tensor hidden_ND = {};  ///< output of the last block, before the final norm
  model::LogitRule rule = {};
};

/// A teacher's logits of rows [begin, begin + rows) of a micro-batch, [R, K]: of the first losses.num_tokens
/// ids of a vocabulary, or of all of them where that is 0.
using TeacherLogits = std::function<at::Tensor(std::int64_t begin, std::int64_t rows)>;
/// Those of a model, computed when they are asked for.  Its head has the first `num_tokens` rows, as checked
/// at the start; no others are computed.
TeacherLogits logits_of_model(const HeadSide& teacher, std::int64_t num_tokens);

/// Adds the losses of a micro-batch to sums_L, float64, one of each loss on logits, and the gradients of norm
/// and matrix to `gradients` (float32); returns the gradient of student.hidden_ND.  `teacher` is asked where
/// a loss needs its logits, else it may be null.
at::Tensor head_loop(const Losses& losses, const HeadSide& student, const TeacherLogits& teacher,
                     const at::Tensor& targets_N, double step_targets, std::int64_t chunk_rows,
                     const model::HeadWeights& gradients, at::Tensor sums_L);

struct HeadLoopShape {
  ops::Path path = ops::Path::cpu;
  std::int64_t tokens = 0;  ///< of a micro-batch
  std::int64_t chunk_rows = 0, vocab = 0, student_hidden = 0, teacher_hidden = 0;
  std::int64_t item_bytes = 4;
  bool teacher_logits = false;
  std::int64_t loss_matrices = 0;  ///< composed_matrices() of the losses
  bool capped = false;             ///< the student's logits have a soft cap
};
/// Bytes that head_loop holds at its peak beyond its arguments and its result.
std::int64_t head_loop_bytes(const HeadLoopShape& shape);

}  // namespace retort::loss
