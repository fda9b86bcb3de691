#include "retort/kernels/tables.h"

#include <ATen/ATen.h>

#include "retort/kernels/device/pieces.h"

namespace retort::kernels::device {
namespace {

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps) {
  const auto type = statistics_type(x_ND);
  const auto rows = x_ND.size(0), dim = x_ND.size(1);
  RmsNorm result{at::empty_like(x_ND), at::empty({rows}, x_ND.options().dtype(type))};
  for_each_piece(rows, dim, [&](std::int64_t begin, std::int64_t count) {
    const auto x_RD = x_ND.narrow(0, begin, count).to(type);
    auto rstd_R = result.rstd_N.narrow(0, begin, count), y_RD = result.y_ND.narrow(0, begin, count);
    rstd_R.copy_(x_RD.square().mean(-1).add_(eps).rsqrt_());
    at::mul_out(y_RD, x_RD, rstd_R.unsqueeze(1));
    y_RD.mul_(w_D);
  });
  return result;
}

at::Tensor rms_norm_backward(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                             const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D) {
  const auto type = statistics_type(x_ND);
  const bool exact = type == x_ND.scalar_type();
  const auto w = w_D.to(type);
  auto gx_ND = at::empty_like(x_ND);
  for_each_piece(x_ND.size(0), x_ND.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    const auto gy_RD = part(gy_ND).to(type), rstd_R1 = part(rstd_N).unsqueeze(1);
    auto gx_RD = exact ? part(gx_ND) : at::empty(gy_RD.sizes(), gy_RD.options());
    at::mul_out(gx_RD, part(x_ND), rstd_R1);  // so far the normalised row
    auto product_RD = gy_RD * gx_RD;
    gw_D.add_(product_RD.sum(0));
    const auto mean_R1 = product_RD.mul_(w).mean(-1, true);
    product_RD = at::Tensor();
    gx_RD.mul_(mean_R1.neg()).addcmul_(gy_RD, w).mul_(rstd_R1);
    if (residual_ND.defined()) gx_RD.add_(part(residual_ND));
    if (!exact) part(gx_ND).copy_(gx_RD);
  });
  return gx_ND;
}

void apply_rotary(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                  double sign) {
  const auto type = statistics_type(x_NX);
  const auto rows = x_NX.size(0), width = heads * head_dim;
  const auto x_NHE = x_NX.narrow(1, 0, width).view({rows, heads, head_dim});
  for_each_piece(rows, width, [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    const auto cosine = part(rotary.cos_NE2).to(type).unsqueeze(1);
    const auto sine = part(rotary.sin_NE2).to(type).unsqueeze(1);
    const auto halves = part(x_NHE).narrow(-1, 0, 2 * rotary.cos_NE2.size(1)).chunk(2, -1);
    auto a = halves[0].to(type), b = halves[1].to(type);  // the views themselves where the type is the same
    const auto turned = a * sine;
    a.mul_(cosine).addcmul_(b, sine, -sign);
    b.mul_(cosine).add_(turned, sign);
    if (type == x_NX.scalar_type()) return;
    halves[0].copy_(a);
    halves[1].copy_(b);
  });
}

// An activation of a gate: the value, and the gradient from that of the value.
struct Gate {
  at::Tensor (*value)(const at::Tensor& gate);
  at::Tensor (*backward)(const at::Tensor& gradient, const at::Tensor& gate);
};
const Gate kSilu{
    [](const at::Tensor& gate) { return at::silu(gate); },
    [](const at::Tensor& gradient, const at::Tensor& gate) { return at::silu_backward(gradient, gate); }};
const Gate kGelu{[](const at::Tensor& gate) { return at::gelu(gate, "tanh"); },
                 [](const at::Tensor& gradient, const at::Tensor& gate) {
                   return at::gelu_backward(gradient, gate, "tanh");
                 }};

template <const Gate& kGate>
at::Tensor gated(const at::Tensor& gate_up_N2I) {
  const auto halves = gate_up_N2I.chunk(2, -1);
  return kGate.value(halves[0]).mul_(halves[1]);
}

template <const Gate& kGate>
GluGrad gated_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I) {
  const auto width = gout_NI.size(1);
  auto out_NI = at::empty_like(gout_NI);
  for_each_piece(gout_NI.size(0), width, [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    auto gate = part(gate_up_N2I).narrow(1, 0, width), up = part(gate_up_N2I).narrow(1, width, width);
    auto out = part(out_NI), value = kGate.value(gate);
    at::mul_out(out, value, up);
    const auto gvalue = part(gout_NI) * up;
    up.copy_(value.mul_(part(gout_NI)));
    value = at::Tensor();
    gate.copy_(kGate.backward(gvalue, gate));
  });
  return {gate_up_N2I, out_NI};
}

void accumulate(const at::Tensor& x, at::Tensor sum) {
  const auto rows = x.size(0);
  for_each_piece(rows, x.numel() / std::max<std::int64_t>(1, rows),
                 [&](std::int64_t begin, std::int64_t count) {
                   sum.narrow(0, begin, count).add_(x.narrow(0, begin, count));
                 });
}

void accumulate_rounded(const at::Tensor& x_CC, const at::Tensor& unit_C, at::Tensor sum_CC) {
  const auto rows = x_CC.size(0);
  for_each_piece(rows, x_CC.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto rounding = at::outer(unit_C.narrow(0, begin, count) * kRoundingUnits, unit_C);
    sum_CC.narrow(0, begin, count).add_((x_CC.narrow(0, begin, count) + rounding).sub_(rounding));
  });
}

}  // namespace

const ElementwiseKernels kElementwise{.rms_norm = rms_norm,
                                      .rms_norm_backward = rms_norm_backward,
                                      .apply_rotary = apply_rotary,
                                      .swiglu = gated<kSilu>,
                                      .geglu = gated<kGelu>,
                                      .swiglu_backward_ = gated_backward_<kSilu>,
                                      .geglu_backward_ = gated_backward_<kGelu>,
                                      .accumulate = accumulate,
                                      .accumulate_rounded = accumulate_rounded};

}  // namespace retort::kernels::device
