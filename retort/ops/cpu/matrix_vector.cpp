#include "retort/ops/cpu/matrix_vector.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <new>

#include "retort/ops/cpu/dispatch.h"
#include "retort/ops/cpu/team.h"

namespace retort::ops::cpu {
namespace {

// Smaller ranges would make the processor begin to read ahead too often.
constexpr std::int64_t kLeastBytes = 1 << 14;

// Numbers at the start of a cache line, so that no vector lies across two.
template <typename C>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::int64_t count)
      : data_(static_cast<C*>(::operator new(static_cast<std::size_t>(count) * sizeof(C), kLine))) {}
  C* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(C* memory) const { ::operator delete(memory, kLine); }
  };
  std::unique_ptr<C, Free> data_;
};

// x in the order of the kernel for weights T: in `scratch`, or where it stands if it has that order.
template <typename T, typename C>
const C* arranged(const at::Tensor& x, Scratch<C>& scratch) {
  if constexpr (std::is_same_v<T, C>) return x.const_data_ptr<C>();
  const auto count = x.numel();
  scratch = Scratch<C>(2 * count);
  C *out = scratch.data(), *plain = out + count;
  if (x.scalar_type() == at::kBFloat16)
    std::copy_n(x.const_data_ptr<at::BFloat16>(), count, plain);
  else
    std::copy_n(x.const_data_ptr<C>(), count, plain);
  kernels<T>().arrange(plain, count, out);
  return out;
}

// y from ranges of rows, which threads take in turn: kernel(rows of W, x, how many, inputs, rows of y).
template <typename T, typename X, typename C, typename Kernel>
void multiply_rows(const at::Tensor& w_MK, const X* x_K, Kernel kernel, C* y_M) {
  const auto inputs = w_MK.size(1);
  const auto row_bytes = std::max<std::int64_t>(1, inputs * static_cast<std::int64_t>(sizeof(T)));
  for_ranges(w_MK.size(0), std::max<std::int64_t>(1, kLeastBytes / row_bytes),
             [&](std::int64_t begin, std::int64_t end) {
               kernel(data<T>(w_MK) + begin * inputs, x_K, end - begin, inputs, y_M + begin);
             });
}

template <typename T, typename C>
void multiply(const at::Tensor& x_1K, const at::Tensor& w_MK, C* y_M) {
  if constexpr (std::is_same_v<T, Bf16>)
    if (const auto* pairs = pair_kernels(); pairs && x_1K.scalar_type() == at::kBFloat16)
      return multiply_rows<T>(w_MK, data<T>(x_1K), pairs->matrix_vector, y_M);
  Scratch<C> scratch;
  multiply_rows<T>(w_MK, arranged<T>(x_1K, scratch), kernels<T>().matrix_vector, y_M);
}

}  // namespace

at::Tensor matrix_vector(const at::Tensor& x_1K, const at::Tensor& w_MK) {
  const auto outputs = w_MK.size(0);
  auto y_1M = at::empty({1, outputs}, x_1K.options());
  with_element(w_MK, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    if (x_1K.scalar_type() != at::kBFloat16) return multiply<T>(x_1K, w_MK, y_1M.mutable_data_ptr<C>());
    const Scratch<C> y_M(outputs);
    multiply<T>(x_1K, w_MK, y_M.data());
    std::copy_n(y_M.data(), outputs, y_1M.mutable_data_ptr<at::BFloat16>());
  });
  return y_1M;
}

}  // namespace retort::ops::cpu
