#include "retort/kernels/tables.h"

#include <ATen/ATen.h>

#include "retort/kernels/device/pieces.h"

namespace retort::kernels::device {
namespace {

// Shape legend beside that of logit_losses.h: R rows of a piece.

at::Tensor sum_of_row_squares(const at::Tensor& x_RD) {
  return at::linalg_vector_norm(x_RD, 2, {1}).to(at::kDouble).square_().sum();
}

at::Tensor difference(const at::Tensor& student_RD, const at::Tensor& teacher_RD) {
  const auto type = statistics_type(student_RD);
  return student_RD.to(type) - teacher_RD.to(type);
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  const auto zero = [&] { return at::zeros({}, student_ND.options().dtype(at::kDouble)); };
  SquareSums sums{zero(), zero()};
  for_each_piece(student_ND.size(0), student_ND.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto teacher_RD = teacher_ND.narrow(0, begin, count);
    sums.error.add_(sum_of_row_squares(difference(student_ND.narrow(0, begin, count), teacher_RD)));
    sums.teacher.add_(sum_of_row_squares(teacher_RD.to(statistics_type(teacher_RD))));
  });
  return sums;
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND) {
  for_each_piece(student_ND.size(0), student_ND.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    part(out_ND).copy_(difference(part(student_ND), part(teacher_ND)).mul_(factor));
  });
}

}  // namespace

const HiddenLossKernels kHiddenLosses{.square_sums = square_sums, .scaled_difference = scaled_difference};

}  // namespace retort::kernels::device
