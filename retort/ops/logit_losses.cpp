#include "retort/ops/logit_losses.h"

#include <ATen/ATen.h>

#include "retort/kernels/tables.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {
namespace {

// Of a path that has some.
const kernels::LogitLossKernels& logit_losses_of(Path path) {
  return path == Path::cpu ? kernels::cpu::kLogitLosses : kernels::cuda::kLogitLosses;
}

// Whether a term compares with a teacher's logits.
bool has_teacher(LogitTermKind kind) {
  switch (kind) {
    case LogitTermKind::cross_entropy:
      return false;
    case LogitTermKind::forward_kl:
    case LogitTermKind::reverse_kl:
      return true;
  }
  throw base::InternalError("logit_losses: kernels know no such kind of term");
}

}  // namespace

bool has_logit_losses(Path path, std::int64_t item_bytes, std::int64_t terms) {
  return path != Path::device && logit_losses_of(path).has_logit_losses(item_bytes, terms);
}

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms,
                        at::Tensor grad_NV) {
  const InOperation timed(Operation::logit_losses);
  constexpr auto* kWhat = "logit_losses takes logits with dense rows and a gradient of one type";
  ensure_alike_rows(kWhat, student_NV, grad_NV);
  if (teacher_NK.defined()) ensure_alike_rows(kWhat, student_NV, teacher_NK);
  for (const auto& term : terms)
    base::ensure(!has_teacher(term.kind) || teacher_NK.defined(),
                 "logit_losses compares with a teacher that is not there");
  const auto path = path_of(student_NV.device());
  base::ensure(has_logit_losses(path, student_NV.element_size(), std::ssize(terms)),
               "logit_losses is asked where it has no kernels");
  return logit_losses_of(path).logit_losses(student_NV, teacher_NK, targets_N, terms, grad_NV);
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  const InOperation timed(Operation::hidden_losses);
  ensure_alike("square_sums takes dense rows of one type", student_ND, teacher_ND);
  return choose(student_ND, kernels::kHiddenLosses).square_sums(student_ND, teacher_ND);
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND) {
  const InOperation timed(Operation::hidden_losses);
  ensure_alike("scaled_difference takes dense rows of one type", student_ND, teacher_ND, out_ND);
  choose(student_ND, kernels::kHiddenLosses).scaled_difference(student_ND, teacher_ND, factor, out_ND);
}

namespace {

// Segment by segment, for what has no kernel of its own.
at::Tensor errors_of_segments(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                              const std::vector<std::int64_t>& bounds, const RelativeError& of,
                              at::Tensor grad_ND) {
  auto value = at::zeros({}, student_ND.options().dtype(at::kDouble));
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto begin = bounds[i], length = bounds[i + 1] - begin;
    const auto s_LD = student_ND.narrow(0, begin, length), t_LD = teacher_ND.narrow(0, begin, length);
    const auto sums = square_sums(s_LD, t_LD);
    const double count = static_cast<double>(s_LD.numel());
    // Divided in this order, the gradient has the same bits however the value is summed.
    const double tokens = static_cast<double>(length);
    const auto relative = sums.teacher / count + of.eps;
    const auto over_relative = [&](double x) { return at::full_like(relative, x).div_(relative); };
    value.add_(over_relative(tokens / of.blocks).mul_(sums.error).div_(count));
    const auto factor = over_relative(tokens / of.step_tokens / of.blocks).mul_(of.weight * 2).div_(count);
    scaled_difference(s_LD, t_LD, factor, grad_ND.narrow(0, begin, length));
  }
  return value;
}

}  // namespace

at::Tensor relative_errors(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                           const std::vector<std::int64_t>& bounds, const RelativeError& of,
                           at::Tensor grad_ND) {
  const InOperation timed(Operation::hidden_losses);
  ensure_alike("relative_errors takes dense rows of one type", student_ND, teacher_ND, grad_ND);
  const auto& errors = choose(
      student_ND, kernels::PerPath{errors_of_segments, errors_of_segments, kernels::cuda::relative_errors});
  return errors(student_ND, teacher_ND, bounds, of, grad_ND);
}

}  // namespace retort::ops
