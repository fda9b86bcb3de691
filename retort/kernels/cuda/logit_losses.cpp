#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/kernels/cuda/arguments.h"
#include "retort/kernels/cuda/kernels.h"
#include "retort/kernels/cuda/segments.h"
#include "retort/kernels/tables.h"

namespace retort::kernels::cuda {
namespace {

using retort_kernels::kMostTerms;
using retort_kernels::LogitRows;
using retort_kernels::LogitTerms;

retort_kernels::LogitTermKind kind_of(LogitTermKind kind) {
  switch (kind) {
    case LogitTermKind::cross_entropy:
      return retort_kernels::kCrossEntropy;
    case LogitTermKind::forward_kl:
      return retort_kernels::kForwardKl;
    case LogitTermKind::reverse_kl:
      return retort_kernels::kReverseKl;
  }
  throw base::InternalError("logit_losses: the kernels for NVIDIA's accelerators know no such kind of term");
}

LogitTerms arguments_of(const std::vector<LogitTerm>& terms) {
  LogitTerms all{};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto& term = terms[i];
    all.kind[i] = kind_of(term.kind);
    all.inverse_temperature[i] = static_cast<float>(1 / term.temperature);
    all.value_scale[i] = static_cast<float>(term.value_scale);
    all.gradient_scale[i] = static_cast<float>(term.gradient_scale);
  }
  return all;
}

bool has_logit_losses(std::int64_t item_bytes, std::int64_t terms) {
  return item_bytes < 8 && terms <= kMostTerms;
}

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms,
                        at::Tensor grad_NV) {
  const auto rows = student_NV.size(0), count = static_cast<std::int64_t>(terms.size());
  if (rows == 0 || count == 0) {
    grad_NV.zero_();
    return at::zeros({count}, student_NV.options().dtype(at::kDouble));
  }
  const bool compares = teacher_NK.defined();
  const LogitRows shape{.rows = rows,
                        .vocab = student_NV.size(1),
                        .student_stride = student_NV.stride(0),
                        .tokens = compares ? teacher_NK.size(1) : 0,
                        .teacher_stride = compares ? teacher_NK.stride(0) : 0,
                        .gradient_stride = grad_NV.stride(0)};
  const auto targets = targets_N.contiguous();
  const auto values_LN = at::empty({count, rows}, student_NV.options().dtype(at::kDouble));
  constexpr int kThreads = 512;
  run(instance("logit_losses", pack_width(student_NV, teacher_NK, grad_NV), count), student_NV.scalar_type(),
      {rows, kThreads}, student_NV, grad_NV.mutable_data_ptr(), values_LN.mutable_data_ptr(),
      student_NV.const_data_ptr(), compares ? teacher_NK.const_data_ptr() : nullptr, targets.const_data_ptr(),
      shape, arguments_of(terms));
  return values_LN.sum(1);
}

}  // namespace

const LogitLossKernels kLogitLosses{.has_logit_losses = has_logit_losses, .logit_losses = logit_losses};

at::Tensor relative_errors(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                           const std::vector<std::int64_t>& bounds, const RelativeError& of,
                           at::Tensor grad_ND) {
  const auto segments = segments_of(bounds, student_ND.device());
  const auto dim = student_ND.size(1), width = pack_width(student_ND, teacher_ND, grad_ND);
  // Some packs for each thread, and few parts: every block reads the sums of all parts of its segment.
  constexpr std::int64_t kPacksOfThread = 8, kMostParts = 128;
  Grid grid;
  const auto parts = std::clamp<std::int64_t>(
      segments.longest * dim / (width * kPacksOfThread * grid.threads), 1, kMostParts);
  grid.blocks = segments.count() * parts;
  const auto sums = at::empty({2, grid.blocks}, student_ND.options().dtype(at::kDouble));
  const auto error = sums[0], teacher = sums[1];
  const auto values_S = at::empty({segments.count()}, sums.options());
  run(instance("square_sums", width), student_ND.scalar_type(), grid, student_ND, error.mutable_data_ptr(),
      teacher.mutable_data_ptr(), student_ND.const_data_ptr(), teacher_ND.const_data_ptr(),
      segments.bounds_S.const_data_ptr(), parts, dim);
  run(instance("relative_errors", width), student_ND.scalar_type(), grid, student_ND,
      grad_ND.mutable_data_ptr(), values_S.mutable_data_ptr(), error.const_data_ptr(),
      teacher.const_data_ptr(), student_ND.const_data_ptr(), teacher_ND.const_data_ptr(),
      segments.bounds_S.const_data_ptr(), parts, dim,
      retort_kernels::RelativeErrors{of.eps, of.blocks, of.step_tokens, of.weight});
  return values_S.sum();
}

}  // namespace retort::kernels::cuda
