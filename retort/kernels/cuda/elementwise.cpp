#include "retort/kernels/cuda/elementwise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "retort/kernels/cuda/kernels.h"
#include "retort/kernels/tables.h"

namespace retort::kernels::cuda {
namespace {

// Threads of a block that walks along a row.
int threads_of_row(std::int64_t packs, std::int64_t most) {
  return static_cast<int>(std::clamp<std::int64_t>((packs + 31) / 32 * 32, 32, most));
}

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps) {
  const auto rows = x_ND.size(0), dim = x_ND.size(1);
  RmsNorm result{at::empty_like(x_ND), at::empty({rows}, x_ND.options().dtype(at::kFloat))};
  const auto width = pack_width(x_ND, w_D, result.y_ND);
  run(instance("rms_norm", width), x_ND.scalar_type(), {rows, threads_of_row(dim / width, 512)}, x_ND,
      result.y_ND.mutable_data_ptr(), result.rstd_N.mutable_data_ptr(), x_ND.const_data_ptr(),
      w_D.const_data_ptr(), dim, static_cast<float>(eps));
  return result;
}

// How the backward of a norm is spread over a device.
struct NormGrid {
  std::int64_t width = 0, packs_of_thread = 0, rows_of_block = 0;
  Grid grid;
};

constexpr std::int64_t kMostNormThreads = 512, kMostPacks = 4;

// None where a row is longer than the threads of a block can hold.
std::optional<NormGrid> norm_grid(std::int64_t rows, std::int64_t dim, std::int64_t width) {
  const auto packs = dim / width;
  for (std::int64_t of_thread = 1; of_thread <= kMostPacks; of_thread *= 2) {
    if (packs > of_thread * kMostNormThreads) continue;
    const auto rows_of_block = (rows + kNormBlocks - 1) / kNormBlocks;
    return NormGrid{width,
                    of_thread,
                    rows_of_block,
                    {(rows + rows_of_block - 1) / rows_of_block,
                     threads_of_row((packs + of_thread - 1) / of_thread, kMostNormThreads)}};
  }
  return {};
}

at::Tensor rms_norm_backward(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                             const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D) {
  const auto rows = x_ND.size(0), dim = x_ND.size(1);
  const auto of = norm_grid(rows, dim, pack_width(x_ND, gy_ND, w_D, residual_ND));
  if (!of) return device::kElementwise.rms_norm_backward(gy_ND, x_ND, w_D, rstd_N, residual_ND, gw_D);
  auto gx_ND = at::empty_like(x_ND);
  const auto gw_BD = at::empty({of->grid.blocks, dim}, gw_D.options());
  run(instance("rms_norm_backward", of->width, of->packs_of_thread), x_ND.scalar_type(), of->grid, x_ND,
      gx_ND.mutable_data_ptr(), gw_BD.mutable_data_ptr(), gy_ND.const_data_ptr(), x_ND.const_data_ptr(),
      w_D.const_data_ptr(), rstd_N.const_data_ptr(),
      residual_ND.defined() ? residual_ND.const_data_ptr() : nullptr, rows, dim, of->rows_of_block);
  run("add_rows<1>", x_ND.scalar_type(), shared_grid(dim), x_ND, gw_D.mutable_data_ptr(),
      gw_BD.const_data_ptr(), of->grid.blocks, dim);
  return gx_ND;
}

void apply_rotary(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                  double sign) {
  const auto cosine = rotary.cos_NE2.contiguous(), sine = rotary.sin_NE2.contiguous();
  const auto rows = x_NX.size(0), pairs = cosine.size(1);
  run("apply_rotary<1>", x_NX.scalar_type(), shared_grid(rows * heads * pairs), x_NX, x_NX.mutable_data_ptr(),
      cosine.const_data_ptr(), sine.const_data_ptr(), rows, x_NX.stride(0), heads, head_dim, pairs,
      static_cast<float>(sign));
}

// Names of types in kernels.cu.
constexpr char kSilu[] = "Silu", kGelu[] = "Gelu";

template <const char* kGate>
at::Tensor gated(const at::Tensor& gate_up_N2I) {
  const auto rows = gate_up_N2I.size(0), width = gate_up_N2I.size(1) / 2;
  auto out_NI = at::empty({rows, width}, gate_up_N2I.options());
  const auto pack = pack_width(gate_up_N2I.narrow(1, width, width), gate_up_N2I, out_NI);
  run(instance("glu", pack, kGate), out_NI.scalar_type(), shared_grid(rows * width / pack), out_NI,
      out_NI.mutable_data_ptr(), gate_up_N2I.const_data_ptr(), rows, width);
  return out_NI;
}

template <const char* kGate>
GluGrad gated_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I) {
  const auto rows = gout_NI.size(0), width = gout_NI.size(1);
  auto out_NI = at::empty_like(gout_NI);
  const auto pack = pack_width(gate_up_N2I.narrow(1, width, width), gate_up_N2I, gout_NI, out_NI);
  run(instance("glu_backward", pack, kGate), out_NI.scalar_type(), shared_grid(rows * width / pack), out_NI,
      out_NI.mutable_data_ptr(), gate_up_N2I.mutable_data_ptr(), gout_NI.const_data_ptr(), rows, width);
  return {std::move(gate_up_N2I), out_NI};
}

}  // namespace

bool has_norm_backward(std::int64_t dim, std::int64_t item_bytes) {
  const auto width = dim * item_bytes % 16 == 0 ? 16 / item_bytes : 1;
  return dim <= width * kMostPacks * kMostNormThreads;
}

const ElementwiseKernels kElementwise{
    .rms_norm = rms_norm,
    .rms_norm_backward = rms_norm_backward,
    .apply_rotary = apply_rotary,
    .swiglu = gated<kSilu>,
    .geglu = gated<kGelu>,
    .swiglu_backward_ = gated_backward_<kSilu>,
    .geglu_backward_ = gated_backward_<kGelu>,
    // The library's kernels add numbers of two types in one pass.
    .accumulate = [](const at::Tensor& x, at::Tensor sum) { sum.add_(x); },
    .accumulate_rounded =
        [](const at::Tensor& x_CC, const at::Tensor& unit_C, at::Tensor sum_CC) {
          device::kElementwise.accumulate_rounded(x_CC, unit_C, sum_CC);
        }};

}  // namespace retort::kernels::cuda
