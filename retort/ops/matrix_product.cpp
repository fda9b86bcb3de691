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
  const auto most =
      std::max<std::int64_t>(1, kWidenedResultBytes / (4 * std::max<std::int64_t>(1, b_KM.size(1))));
  for (std::int64_t first = 0; first < a_NK.size(0); first += most) {
    const auto rows = std::min(most, a_NK.size(0) - first);
    auto piece_RM = product_NM.narrow(0, first, rows);
    at::mm_out(piece_RM, a_NK.narrow(0, first, rows), b_KM);
  }
  return product_NM;
}

}  // namespace

at::Tensor matrix_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  const InOperation timed(Operation::product);
  if (suits_amx(a_NK, b_KM)) return product_by_amx(a_NK, b_KM);
  if (kernels::cpu::suits_onednn_product(a_NK, b_KM)) return kernels::cpu::onednn_product(a_NK, b_KM);
  const bool by_rows =
      widens_bf16_results() && path_of(a_NK.device()) == Path::cpu && a_NK.scalar_type() == at::kBFloat16;
  return by_rows ? product_by_rows(a_NK, b_KM) : at::mm(a_NK, b_KM);
}

bool widens_bf16_results() {
#if defined(__x86_64__) || defined(_M_X64)
  static const bool widens = __builtin_cpu_supports("avx512bw") && !__builtin_cpu_supports("avx512bf16");
  return widens;
#else
  return false;
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
