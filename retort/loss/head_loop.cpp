#include "retort/loss/head_loop.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/loss/chunk.h"
#include "retort/model/block.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/matrix_product.h"
#include "retort/ops/work_memory.h"

namespace retort::loss {
namespace {

at::Tensor logits_of(const HeadSide& side, const at::Tensor& normal_RD, const at::Tensor& matrix_KD) {
  auto logits_RK = ops::matrix_product(normal_RD, matrix_KD.t());
  model::bend_logits_(logits_RK, side.rule);
  return logits_RK;
}

// The gradient of a soft cap is computed from the logits; else the losses write theirs over them.
bool keeps_logits(const model::LogitRule& rule) {
  return rule.softcap > 0;
}

std::int64_t chunk_bytes(const HeadLoopShape& s, std::int64_t chunk_rows) {
  const std::int64_t logits = (1 + s.teacher_logits + s.capped) * chunk_rows * s.vocab;
  const std::int64_t rows = chunk_rows * (4 * s.student_hidden + (s.teacher_logits ? s.teacher_hidden : 0));
  const auto adding =
      ops::add_transposed_product_work_bytes(s.path, chunk_rows, s.vocab, s.student_hidden, s.item_bytes);
  const auto losing = composed_bytes(s.loss_matrices, s.path, chunk_rows, s.vocab, s.item_bytes);
  const auto norm = ops::rms_norm_work_bytes(s.path, chunk_rows, s.student_hidden, s.item_bytes);
  return s.item_bytes * (logits + rows) + std::max({adding, losing, norm});
}

}  // namespace

TeacherLogits logits_of_model(const HeadSide& teacher, std::int64_t num_tokens) {
  const auto& matrix_VD = teacher.weights.matrix_VD;
  return [teacher, matrix_KD = num_tokens > 0 ? matrix_VD.narrow(0, 0, num_tokens) : matrix_VD](
             std::int64_t begin, std::int64_t rows) {
    const auto hidden_RD = teacher.hidden_ND.narrow(0, begin, rows);
    return logits_of(teacher, ops::rms_norm(hidden_RD, teacher.weights.norm_D, teacher.eps).y_ND, matrix_KD);
  };
}

at::Tensor head_loop(const Losses& losses, const HeadSide& student, const TeacherLogits& teacher,
                     const at::Tensor& targets_N, double step_targets, std::int64_t chunk_rows,
                     const model::HeadWeights& gradients, at::Tensor sums_L) {
  const auto tokens = student.hidden_ND.size(0);
  auto ghidden_ND = at::empty_like(student.hidden_ND);
  // Nothing goes around the final norm.
  const auto residual_RD = at::zeros_like(student.hidden_ND.narrow(0, 0, std::min(chunk_rows, tokens)));
  auto gnorm_D = gradients.norm_D;
  for (std::int64_t begin = 0; begin < tokens; begin += chunk_rows) {
    const auto rows = std::min(chunk_rows, tokens - begin);
    const auto hidden_RD = student.hidden_ND.narrow(0, begin, rows);
    const auto norm = ops::rms_norm(hidden_RD, student.weights.norm_D, student.eps);
    const auto student_RV = logits_of(student, norm.y_ND, student.weights.matrix_VD);
    const auto teacher_RK = losses.needs_teacher_logits() ? teacher(begin, rows) : at::Tensor();
    const auto grad_RV = keeps_logits(student.rule) ? at::empty_like(student_RV) : student_RV;
    sums_L.add_(losses_of_chunk(losses.on_logits, {student_RV, teacher_RK, targets_N.narrow(0, begin, rows)},
                                step_targets, grad_RV));
    model::bend_logits_backward_(grad_RV, student_RV, student.rule);

    ops::add_transposed_product(gradients.matrix_VD, grad_RV, norm.y_ND);
    const auto gnormal_RD = ops::matrix_product(grad_RV, student.weights.matrix_VD);
    ghidden_ND.narrow(0, begin, rows)
        .copy_(ops::rms_norm_backward(gnormal_RD, hidden_RD, student.weights.norm_D, norm.rstd_N,
                                      residual_RD.narrow(0, 0, rows), gnorm_D));
  }
  return ghidden_ND;
}

std::int64_t head_loop_bytes(const HeadLoopShape& s) {
  // A product of few rows may need other work than that of a whole chunk.
  const auto left = s.tokens % s.chunk_rows;
  return std::max(chunk_bytes(s, std::min(s.chunk_rows, s.tokens)), left > 0 ? chunk_bytes(s, left) : 0);
}

}  // namespace retort::loss
