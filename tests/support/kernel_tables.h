#pragma once
// Runs a test on the kernels of every instruction set that this processor has, in every element type.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/kernels/cpu/vector_kernels.h"
#include "support/tolerance.h"

namespace retort::test {

template <typename T>
inline constexpr at::ScalarType kTypeOf = std::is_same_v<T, float>    ? at::kFloat
                                          : std::is_same_v<T, double> ? at::kDouble
                                                                      : at::kBFloat16;

template <typename T>
struct Case {
  using Element = T;
  using Compute = typename kernels::ComputeOf<T>::type;
  static constexpr at::ScalarType kType = kTypeOf<T>;
  static constexpr at::ScalarType kStatistics = kTypeOf<Compute>;
  const kernels::VectorKernels<T>& kernels;
  double allowed = tolerance(kType);

  /// Random values in this type, and (exact) in double.
  at::Tensor random(at::IntArrayRef shape) const { return at::randn(shape, at::kDouble).to(kType); }
  static T* data(const at::Tensor& x) { return static_cast<T*>(x.mutable_data_ptr()); }
  static Compute* statistics(const at::Tensor& x) { return static_cast<Compute*>(x.mutable_data_ptr()); }
};

/// body(Case<T>) for every table and type.
template <typename Body>
void for_every_kernel(Body body) {
  int tables = 0;
  for (const auto* table = kernels::all_vector_tables(); *table != nullptr; ++table, ++tables) {
    SCOPED_TRACE((*table)->isa);
    at::manual_seed(7);
    {
      SCOPED_TRACE("float");
      body(Case<float>{(*table)->f32});
    }
    {
      SCOPED_TRACE("double");
      body(Case<double>{(*table)->f64});
    }
    {
      SCOPED_TRACE("bfloat16");
      body(Case<kernels::Bf16>{(*table)->bf16});
    }
  }
  EXPECT_GE(tables, 1);
}

/// Sizes below, at and above the kernels' 16 lanes, with tails.
inline const std::vector<std::int64_t>& row_sizes() {
  static const std::vector<std::int64_t> kSizes = {1, 3, 15, 16, 17, 31, 32, 40, 133, 1000};
  return kSizes;
}

inline at::Tensor leaf(const at::Tensor& x) {
  return x.to(at::kDouble).clone().set_requires_grad(true);
}

}  // namespace retort::test
