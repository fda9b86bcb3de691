#include "retort/kernels/tables.h"

#include <ATen/Dispatch.h>

#include <bit>

#include "retort/kernels/cpu/dispatch.h"

namespace retort::kernels::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 16;
// Partial sums over tokens are made over pieces of this many rows and then added in order: the same bits for
// any number of threads.
constexpr std::int64_t kRowsPerPiece = 256;

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps) {
  RmsNorm result{at::empty_like(x_ND),
                 at::empty({x_ND.size(0)}, x_ND.options().dtype(statistics_type(x_ND)))};
  const auto dim = x_ND.size(1);
  with_element(x_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    at::parallel_for(0, x_ND.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      kernels<T>().rms_norm_forward(data<T>(x_ND) + begin * dim, data<T>(w_D), eps, end - begin, dim,
                                    data<T>(result.y_ND) + begin * dim, data<C>(result.rstd_N) + begin);
    });
  });
  return result;
}

at::Tensor rms_norm_backward(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                             const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D) {
  auto gx_ND = at::empty_like(x_ND);
  const auto rows = x_ND.size(0), dim = x_ND.size(1), pieces = (rows + kRowsPerPiece - 1) / kRowsPerPiece;
  auto partial_PD = at::zeros({pieces, dim}, x_ND.options().dtype(statistics_type(x_ND)));
  with_element(x_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto piece = begin; piece < end; ++piece) {
        const auto row = piece * kRowsPerPiece, at = row * dim;
        kernels<T>().rms_norm_backward(
            data<T>(gy_ND) + at, data<T>(x_ND) + at, data<T>(w_D), data<C>(rstd_N) + row,
            residual_ND.defined() ? data<T>(residual_ND) + at : nullptr, std::min(kRowsPerPiece, rows - row),
            dim, data<T>(gx_ND) + at, data<C>(partial_PD) + piece * dim);
      }
    });
  });
  for (std::int64_t piece = 0; piece < pieces; ++piece) gw_D.add_(partial_PD[piece]);
  return gx_ND;
}

void apply_rotary(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                  double sign) {
  const auto rows = x_NX.size(0), half = rotary.cos_NE2.size(1);
  const auto stride = x_NX.stride(0);
  with_element(x_NX, [&](auto element) {
    using T = typename decltype(element)::type;
    at::parallel_for(0, rows, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      kernels<T>().rope(data<T>(x_NX) + begin * stride, data<float>(rotary.cos_NE2) + begin * half,
                        data<float>(rotary.sin_NE2) + begin * half, end - begin, stride, heads, head_dim,
                        half, sign);
    });
  });
}

enum class Gate { silu, gelu };

template <Gate kGate>
at::Tensor gated(const at::Tensor& gate_up_N2I) {
  const auto width = gate_up_N2I.size(1) / 2;
  auto out_NI = at::empty({gate_up_N2I.size(0), width}, gate_up_N2I.options());
  with_element(gate_up_N2I, [&](auto element) {
    using T = typename decltype(element)::type;
    const auto forward = kGate == Gate::gelu ? kernels<T>().geglu_forward : kernels<T>().swiglu_forward;
    at::parallel_for(0, gate_up_N2I.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      forward(data<T>(gate_up_N2I) + begin * 2 * width, end - begin, width, data<T>(out_NI) + begin * width);
    });
  });
  return out_NI;
}

template <Gate kGate>
GluGrad gated_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I) {
  const auto width = gate_up_N2I.size(1) / 2;
  GluGrad result{gate_up_N2I, at::empty_like(gout_NI)};
  with_element(gate_up_N2I, [&](auto element) {
    using T = typename decltype(element)::type;
    const auto backward = kGate == Gate::gelu ? kernels<T>().geglu_backward : kernels<T>().swiglu_backward;
    at::parallel_for(0, gate_up_N2I.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      auto* gate_up = data<T>(gate_up_N2I) + begin * 2 * width;
      backward(data<T>(gout_NI) + begin * width, gate_up, end - begin, width, gate_up,
               data<T>(result.out_NI) + begin * width);
    });
  });
  return result;
}

void accumulate(const at::Tensor& x, at::Tensor sum) {
  const bool fast = x.scalar_type() == at::kBFloat16 && sum.scalar_type() == at::kFloat &&
                    x.is_contiguous() && sum.is_contiguous();
  if (!fast) {
    sum.add_(x);
    return;
  }
  constexpr std::int64_t kElementsPerTask = 1 << 15;
  at::parallel_for(0, sum.numel(), kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
    const Bf16* from = data<Bf16>(x);
    float* to = data<float>(sum);
    // A bfloat16 number is the upper half of a float32.
    for (auto i = begin; i < end; ++i) to[i] += std::bit_cast<float>(std::uint32_t{from[i].bits} << 16);
  });
}

void accumulate_rounded(const at::Tensor& x_CC, const at::Tensor& unit_C, at::Tensor sum_CC) {
  const auto columns = sum_CC.size(1);
  AT_DISPATCH_FLOATING_TYPES(x_CC.scalar_type(), "accumulate_rounded", [&] {
    const scalar_t* x = x_CC.const_data_ptr<scalar_t>();
    const double* units = unit_C.const_data_ptr<double>();
    double* sum = sum_CC.mutable_data_ptr<double>();
    at::parallel_for(0, sum_CC.size(0), 16, [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row)
        for (std::int64_t i = 0; i < columns; ++i) {
          const double rounding = kRoundingUnits * units[row] * units[i];
          sum[row * columns + i] += (static_cast<double>(x[row * columns + i]) + rounding) - rounding;
        }
    });
  });
}

}  // namespace

const ElementwiseKernels kElementwise{.rms_norm = rms_norm,
                                      .rms_norm_backward = rms_norm_backward,
                                      .apply_rotary = apply_rotary,
                                      .swiglu = gated<Gate::silu>,
                                      .geglu = gated<Gate::gelu>,
                                      .swiglu_backward_ = gated_backward_<Gate::silu>,
                                      .geglu_backward_ = gated_backward_<Gate::gelu>,
                                      .accumulate = accumulate,
                                      .accumulate_rounded = accumulate_rounded};

}  // namespace retort::kernels::cpu
