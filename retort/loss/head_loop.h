#pragma once
// Final norm, head product and the losses on logits, in chunks of rows: no tokens x vocabulary tensor ever
// exists.
//
// Shape legend: N tokens of a micro-batch, D hidden, F hidden of the teacher, V vocabulary, R rows of a
// chunk.

#include <ATen/core/Tensor.h>

#include <cstdint>

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

/// Adds the losses of a micro-batch to sums_L, float64, one of each loss on logits, and the gradients of norm
/// and matrix to `gradients` (float32); returns the gradient of student.hidden_ND.  teacher.hidden_ND may be
/// undefined.  Both heads have the first losses.num_tokens rows, as checked at the start; of the teacher's no
/// others are computed.
at::Tensor head_loop(const Losses& losses, const HeadSide& student, const HeadSide& teacher,
                     const at::Tensor& targets_N, double step_targets, std::int64_t chunk_rows,
                     const model::HeadWeights& gradients, at::Tensor sums_L);

struct HeadLoopShape {
  ops::Path path = ops::Path::cpu;
  std::int64_t tokens = 0;  ///< of a micro-batch
  std::int64_t chunk_rows = 0, vocab = 0, student_hidden = 0, teacher_hidden = 0;
  std::int64_t item_bytes = 4;
  bool teacher_logits = false;
  bool capped = false;  ///< the student's logits have a soft cap
};
/// Bytes that head_loop holds at its peak beyond its arguments and its result.
std::int64_t head_loop_bytes(const HeadLoopShape& shape);

}  // namespace retort::loss
