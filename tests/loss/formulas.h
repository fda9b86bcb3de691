#pragma once
// Losses on logits as their formulas read, for autograd in float64; and every loss with all that changes its
// mathematics.

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/loss/options.h"
#include "retort/ops/reference/formulas.h"

namespace retort::test {

inline at::Tensor kl_formula(const at::Tensor& log_a, const at::Tensor& log_b) {
  return (log_a.exp() * (log_a - log_b)).sum(-1);
}

inline at::Tensor jensen_shannon_formula(const loss::LossOptions& options, const at::Tensor& student,
                                         const at::Tensor& teacher) {
  const double t = options.temperature, beta = options.beta, scale = options.temperature_squared ? t * t : 1;
  const auto log_q = at::log_softmax(student / t, -1), log_p = at::log_softmax(teacher / t, -1);
  if (beta == 0) return scale * kl_formula(log_p, log_q);
  if (beta == 1) return scale * kl_formula(log_q, log_p);
  const auto log_m = at::logaddexp(log_p + std::log(beta), log_q + std::log(1 - beta));
  return scale * (beta * kl_formula(log_p, log_m) + (1 - beta) * kl_formula(log_q, log_m));
}

/// Of each row, [R]; student [R, V], teacher [R, K], all rows have a target.
inline at::Tensor loss_formula(const loss::LossOptions& options, const at::Tensor& student,
                               const at::Tensor& teacher, const at::Tensor& targets) {
  const auto shared = student.narrow(1, 0, teacher.size(1));
  switch (options.kind) {
    case loss::LossKind::cross_entropy:
      return ops::reference::cross_entropy(student, targets);
    case loss::LossKind::kl_divergence:
      return ops::reference::kl_divergence(shared, teacher, targets, options.temperature,
                                           options.direction == loss::KlDirection::reverse,
                                           options.temperature_squared);
    case loss::LossKind::jensen_shannon:
      return jensen_shannon_formula(options, shared, teacher);
    case loss::LossKind::total_variation:
      return 0.5 *
             (at::softmax(shared / options.temperature, -1) - at::softmax(teacher / options.temperature, -1))
                 .abs()
                 .sum(-1);
    case loss::LossKind::squarehead:
      break;
  }
  throw base::InternalError("not a loss on logits");
}

inline std::string described(const loss::LossOptions& o) {
  return std::string(loss::traits_of(o.kind).name) + " at T = " + std::to_string(o.temperature) +
         (o.direction == loss::KlDirection::reverse ? ", reverse" : "") + ", beta " + std::to_string(o.beta);
}

/// Each kind with all that its mathematics depends on.
inline std::vector<loss::LossOptions> losses_on_logits() {
  std::vector<loss::LossOptions> all;
  for (const auto& traits : loss::kLossTraits) {
    if (traits.on_hidden_states) continue;
    for (const double temperature : {1.0, 3.0})
      for (const auto direction : {loss::KlDirection::forward, loss::KlDirection::reverse})
        all.push_back({.kind = traits.kind,
                       .weight = 0.7,
                       .temperature = temperature,
                       .direction = direction,
                       .temperature_squared = direction == loss::KlDirection::forward});
  }
  for (const double beta : {0.0, 0.1, 0.9, 1.0})
    all.push_back({.kind = loss::LossKind::jensen_shannon, .weight = 0.7, .temperature = 2, .beta = beta});
  return all;
}

}  // namespace retort::test
