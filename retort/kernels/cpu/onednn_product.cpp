#include "retort/kernels/cpu/onednn_product.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace retort::kernels::cpu {
namespace {

// Below it, finding the kernel takes longer than it saves.
constexpr std::int64_t kLeastMultiplications = std::int64_t{1} << 23;

using Linear = at::Tensor(const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<at::Tensor>& bias, c10::string_view after,
                          c10::List<std::optional<at::Scalar>> scalars,
                          std::optional<c10::string_view> algorithm);

// The operation that libtorch's own compiler calls: it is found by name, so a libtorch without it serves too.
const std::optional<c10::TypedOperatorHandle<Linear>>& linear() {
  static const auto found = []() -> std::optional<c10::TypedOperatorHandle<Linear>> {
    const auto handle = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!handle) return {};
    return handle->typed<Linear>();
  }();
  return found;
}

enum class ByOneDnn { none, transposed, all };

// On processors of other makers than Intel, MKL takes its kernels for AVX2 where it has those for AVX-512,
// and copies a transposed `b` slowly.
ByOneDnn faster_by_onednn() {
#if defined(__x86_64__) || defined(_M_X64)
  if (__builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f")) return ByOneDnn::all;
  if (__builtin_cpu_is("amd") && __builtin_cpu_supports("avx2")) return ByOneDnn::transposed;
#endif
  return ByOneDnn::none;
}

// Settled once: operands of equal shapes and strides always go to the same library.
bool goes_to_onednn(const at::Tensor& b_KM) {
  static const auto chosen = linear() ? faster_by_onednn() : ByOneDnn::none;
  return chosen == ByOneDnn::all || (chosen == ByOneDnn::transposed && b_KM.t().is_contiguous());
}

}  // namespace

// oneDNN copies a transposed `a`, which takes what the product gains.
bool suits_onednn_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  return goes_to_onednn(b_KM) && a_NK.device().is_cpu() && a_NK.scalar_type() == at::kFloat &&
         b_KM.scalar_type() == at::kFloat && a_NK.is_contiguous() &&
         a_NK.numel() * b_KM.size(1) >= kLeastMultiplications;
}

at::Tensor onednn_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  if (!linear()) return {};
  const c10::List<std::optional<at::Scalar>> none;
  return linear()->call(a_NK, b_KM.t(), std::nullopt, "none", none, std::nullopt);
}

}  // namespace retort::kernels::cpu
