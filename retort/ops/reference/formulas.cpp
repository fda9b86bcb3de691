#include "retort/ops/reference/formulas.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace retort::ops::reference {
namespace {

at::ScalarType compute_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps) {
  const auto x = x_ND.to(compute_type(x_ND));
  const auto normal = x * at::rsqrt(x.square().mean(-1, true) + eps);
  return normal.to(x_ND.scalar_type()) * w_D;
}

at::Tensor rotary(const at::Tensor& x_NHE, const at::Tensor& cos_NE2, const at::Tensor& sin_NE2,
                  double sign) {
  const auto x = x_NHE.to(compute_type(x_NHE));
  const auto turned = 2 * cos_NE2.size(1);
  const auto halves = x.narrow(-1, 0, turned).chunk(2, -1);
  const auto cosine = cos_NE2.to(x.scalar_type()).unsqueeze(1);
  const auto sine = sin_NE2.to(x.scalar_type()).unsqueeze(1) * sign;
  return at::cat({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine,
                  x.narrow(-1, turned, x.size(-1) - turned)},
                 -1)
      .to(x_NHE.scalar_type());
}

at::Tensor swiglu(const at::Tensor& gate_up_N2I) {
  const auto halves = gate_up_N2I.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

at::Tensor geglu(const at::Tensor& gate_up_N2I) {
  const auto halves = gate_up_N2I.chunk(2, -1);
  return at::gelu(halves[0], "tanh") * halves[1];
}

at::Tensor attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                     const std::vector<std::int64_t>& starts, const ScoreRule& rule) {
  const auto groups = q_NHE.size(1) / k_NKE.size(1);
  const double scale = rule.of_heads(q_NHE.size(2)).scale;
  std::vector<at::Tensor> outputs;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto length = starts[i + 1] - starts[i];
    const auto take = [&](const at::Tensor& x) { return x.narrow(0, starts[i], length).transpose(0, 1); };
    const auto q = take(q_NHE), k = take(k_NKE).repeat_interleave(groups, 0),
               v = take(v_NKE).repeat_interleave(groups, 0);
    auto scores = (at::matmul(q, k.transpose(1, 2)) * scale).to(compute_type(q_NHE));
    if (rule.softcap > 0) scores = at::tanh(scores / rule.softcap) * rule.softcap;
    const auto ones = at::ones({length, length}, scores.options().dtype(at::kBool));
    auto hidden = ones.triu(1);
    if (rule.window > 0) hidden = hidden.logical_or(ones.tril(-rule.window));
    const auto weights =
        at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
    outputs.push_back(at::matmul(weights.to(v.scalar_type()), v).transpose(0, 1));
  }
  return at::cat(outputs, 0);
}

at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  const auto counted = targets_N.ge(0);
  const auto log_p = at::log_softmax(logits_NV, -1);
  const auto picked = log_p.gather(1, targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
  return at::where(counted, -picked, at::zeros_like(picked));
}

at::Tensor kl_divergence(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                         const at::Tensor& targets_N, double temperature, bool reverse,
                         bool temperature_squared) {
  const auto log_s = at::log_softmax(student_NV / temperature, -1);
  const auto log_t = at::log_softmax(teacher_NV / temperature, -1);
  const auto terms = reverse ? log_s.exp() * (log_s - log_t) : log_t.exp() * (log_t - log_s);
  const auto kl = terms.sum(-1) * (temperature_squared ? temperature * temperature : 1.0);
  return at::where(targets_N.ge(0), kl, at::zeros_like(kl));
}

void adamw(at::Tensor& p, const at::Tensor& g, at::Tensor& m, at::Tensor& v, double lr, double beta1,
           double beta2, double eps, double weight_decay, std::int64_t step) {
  m.mul_(beta1).add_(g, 1 - beta1);
  v.mul_(beta2).addcmul_(g, g, 1 - beta2);
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(step));
  p.mul_(1 - lr * weight_decay);
  p.addcdiv_(m, (v / correction2).sqrt_().add_(eps), -lr / correction1);
}

}  // namespace retort::ops::reference
