#pragma once
// From a tensor to the vector kernels of its element type.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <bit>

#include "retort/base/error.h"
#include "retort/kernels/cpu/vector_kernels.h"

namespace retort::kernels::cpu {

template <typename T>
struct Element {
  using type = T;
};

template <typename T>
const VectorKernels<T>& kernels() {
  if constexpr (std::is_same_v<T, float>)
    return vector_tables().f32;
  else if constexpr (std::is_same_v<T, double>)
    return vector_tables().f64;
  else
    return vector_tables().bf16;
}

/// Calls body(Element<T>) for the tensor's type.
template <typename Body>
auto with_element(const at::Tensor& x, Body body) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return body(Element<float>{});
    case at::kDouble:
      return body(Element<double>{});
    case at::kBFloat16:
      return body(Element<Bf16>{});
    default:
      throw base::InternalError(
          base::join("ops: no kernel for element type ", at::toString(x.scalar_type()), "."));
  }
}

inline float widened(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
template <typename C>
C widened(C x) {
  return x;
}

template <typename T>
T* data(const at::Tensor& x) {
  return static_cast<T*>(x.mutable_data_ptr());
}

}  // namespace retort::kernels::cpu
