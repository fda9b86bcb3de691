#include "retort/ops/matrix_product.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/kernels/cpu/amx_product.h"
#include "retort/kernels/cpu/onednn_product.h"
#include "retort/kernels/cpu/packed_product.h"
#include "retort/kernels/device/pieces.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/float32_products.h"
#include "retort/ops/operation_clock.h"
#include "retort/ops/path.h"

namespace retort::ops {
namespace {

bool suits_amx(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  return path_of(a_NK.device()) == Path::cpu && a_NK.scalar_type() == at::kFloat &&
         float32_products() == Float32Products::amx && kernels::cpu::suits_amx_product(a_NK, b_KM);
}

bool adds_by_amx(const at::Tensor& sum_NM, const at::Tensor& a_NK, const at::Tensor& b_KM) {
  const bool wanted = a_NK.scalar_type() != at::kFloat || float32_products() == Float32Products::amx;
  return wanted && kernels::cpu::suits_amx_sum(sum_NM, a_NK, b_KM);
}

at::Tensor product_by_amx(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  auto product_NM = at::empty({a_NK.size(0), b_KM.size(1)}, a_NK.options());
  kernels::cpu::amx_product(product_NM, a_NK, b_KM, kernels::cpu::AmxResult::assigned);
  return product_NM;
}

// In the sum's type, so nothing is rounded before it is added; where a processor has no products of bfloat16
// it is faster as well.
void add_widened_product(at::Tensor sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK) {
  const auto type = sum_MK.scalar_type();
  kernels::device::for_each_piece(a_NM.size(0), a_NM.size(1) + b_NK.size(1),
                                  [&](std::int64_t first, std::int64_t rows) {
                                    at::addmm_out(sum_MK, sum_MK, a_NM.narrow(0, first, rows).to(type).t(),
                                                  b_NK.narrow(0, first, rows).to(type));
                                  });
}

at::Tensor product_by_rows(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  auto product_NM = at::empty({a_NK.size(0), b_KM.size(1)}, a_NK.options());
  const auto most = std::max<std::int64_t>(1, kWidenedBytes / (4 * std::max<std::int64_t>(1, b_KM.size(1))));
  for (std::int64_t first = 0; first < a_NK.size(0); first += most) {
    const auto rows = std::min(most, a_NK.size(0) - first);
    auto piece_RM = product_NM.narrow(0, first, rows);
    at::mm_out(piece_RM, a_NK.narrow(0, first, rows), b_KM);
  }
  return product_NM;
}

// Squares of both factors and of the result in float32, which together fill at most kWidenedBytes.
constexpr std::int64_t kWidenedSide = 288;
static_assert(3 * kWidenedSide * kWidenedSide * std::int64_t{sizeof(float)} <= kWidenedBytes);

at::Tensor widened_square(const at::Tensor& x, std::int64_t row, std::int64_t column) {
  return x.narrow(0, row, std::min(kWidenedSide, x.size(0) - row))
      .narrow(1, column, std::min(kWidenedSide, x.size(1) - column))
      .to(at::kFloat);
}

at::Tensor widened_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  auto product_NM = at::empty({a_NK.size(0), b_KM.size(1)}, a_NK.options());
  for (std::int64_t row = 0; row < a_NK.size(0); row += kWidenedSide)
    for (std::int64_t column = 0; column < b_KM.size(1); column += kWidenedSide) {
      auto square_NM = product_NM.narrow(0, row, std::min(kWidenedSide, a_NK.size(0) - row))
                           .narrow(1, column, std::min(kWidenedSide, b_KM.size(1) - column));
      auto sum_NM = at::zeros(square_NM.sizes(), a_NK.options().dtype(at::kFloat));
      for (std::int64_t k = 0; k < a_NK.size(1); k += kWidenedSide)
        at::addmm_out(sum_NM, sum_NM, widened_square(a_NK, row, k), widened_square(b_KM, k, column));
      square_NM.copy_(sum_NM);
    }
  return product_NM;
}

}  // namespace

at::Tensor matrix_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  const InOperation timed(Operation::product);
  if (suits_amx(a_NK, b_KM)) return product_by_amx(a_NK, b_KM);
  if (kernels::cpu::suits_onednn_product(a_NK, b_KM)) return kernels::cpu::onednn_product(a_NK, b_KM);
  if (!a_NK.is_cpu() || a_NK.scalar_type() != at::kBFloat16) return at::mm(a_NK, b_KM);
  switch (bf16_products()) {
    case Bf16Products::by_row:
      return product_by_rows(a_NK, b_KM);
    case Bf16Products::widened:
      return widened_product(a_NK, b_KM);
    case Bf16Products::whole:
      break;
  }
  return at::mm(a_NK, b_KM);
}

Bf16Products bf16_products() {
#if defined(__x86_64__) || defined(_M_X64)
  static const auto found = __builtin_cpu_supports("avx512bf16") ? Bf16Products::whole
                            : __builtin_cpu_supports("avx512bw") ? Bf16Products::by_row
                                                                 : Bf16Products::widened;
  return found;
#else
  return Bf16Products::whole;
#endif
}

at::Tensor linear(const at::Tensor& x_NK, const at::Tensor& w_MK) {
  return matrix_product(x_NK, w_MK.t());
}

void add_transposed_product(at::Tensor sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK) {
  const InOperation timed(Operation::product);
  const bool on_cpu = path_of(a_NM.device()) == Path::cpu;
  if (on_cpu && adds_by_amx(sum_MK, a_NM.t(), b_NK))
    kernels::cpu::amx_product(sum_MK, a_NM.t(), b_NK, kernels::cpu::AmxResult::added);
  else if (on_cpu && kernels::cpu::suits_packed_product(sum_MK, a_NM, b_NK))
    kernels::cpu::add_packed_product(sum_MK, a_NM, b_NK);
  else if (sum_MK.scalar_type() == a_NM.scalar_type())
    at::addmm_out(sum_MK, sum_MK, a_NM.t(), b_NK);
  else if (on_cpu)
    add_widened_product(sum_MK, a_NM, b_NK);
  else if (a_NM.is_cuda() && path_of(a_NM.device()) == Path::cuda && sum_MK.scalar_type() == at::kFloat)
    at::addmm_out(sum_MK, sum_MK, a_NM.t(), b_NK, at::kFloat);  // nothing is rounded on the way
  else
    accumulate(at::mm(a_NM.t(), b_NK), sum_MK);
}

void add_gram_product(at::Tensor sum_CC, const at::Tensor& x_NC) {
  const InOperation timed(Operation::product);
  if (path_of(x_NC.device()) != Path::cpu) {
    if (sum_CC.scalar_type() == x_NC.scalar_type())
      at::addmm_out(sum_CC, sum_CC, x_NC.t(), x_NC);
    else
      sum_CC.add_(at::mm(x_NC.t(), x_NC));
    return;
  }
  const bool apart = sum_CC.scalar_type() != x_NC.scalar_type();
  const auto product_CC = apart ? at::zeros(sum_CC.sizes(), x_NC.options()) : sum_CC;
  if (adds_by_amx(product_CC, x_NC.t(), x_NC))
    kernels::cpu::amx_product(product_CC, x_NC.t(), x_NC, kernels::cpu::AmxResult::added_above_the_diagonal);
  else
    kernels::cpu::add_upper_product(product_CC, x_NC);
  kernels::cpu::mirror_upper(product_CC);
  if (apart) sum_CC.add_(product_CC);
}

}  // namespace retort::ops
