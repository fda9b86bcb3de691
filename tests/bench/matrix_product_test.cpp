// Which type is taken by what was measured.
#include "retort/bench/matrix_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace retort::bench {
namespace {

TEST(TypeRates, Bf16HasToBeFasterByATenth) {
  const auto faster = [](double fp32, double bf16) { return TypeRates{{}, fp32, bf16}.faster(); };
  EXPECT_EQ(faster(1e11, 1.85e11), at::kBFloat16);  // AVX-512 BF16 that is worth it
  EXPECT_EQ(faster(1e11, 0.33e11), at::kFloat);     // the same instructions, a third of the rate
  EXPECT_EQ(faster(1e11, 1.05e11), at::kFloat);
  EXPECT_EQ(faster(1e11, 1.11e11), at::kBFloat16);
}

TEST(TypeRates, AreMeasuredInTheShapeAskedFor) {
  const auto rates = measure_types({64, 48, 80}, at::kCPU);
  EXPECT_EQ(rates.shape.rows, 64);
  EXPECT_EQ(rates.shape.inner, 48);
  EXPECT_EQ(rates.shape.columns, 80);
  EXPECT_GT(rates.fp32, 0);
  EXPECT_GT(rates.bf16, 0);
  EXPECT_EQ(rates.shape.flops(), 2.0 * 64 * 48 * 80);
}

TEST(TypeRates, OfALargeModelAreMeasuredInASmallerShape) {
  const auto rates = measure_types({1 << 20, 1 << 14, 1 << 16}, at::kCPU);
  EXPECT_EQ(rates.shape.inner, 4096);
  EXPECT_EQ(rates.shape.columns, 4096);
  EXPECT_EQ(rates.shape.rows, 128);
}

// How fast a machine is cannot be asserted; that the figure is a rate of this machine can: a product of 2 *
// 1024^3 operations takes more than a nanosecond, and less than the seconds for which a test may run.
TEST(MatrixProduct, RateIsThatOfAMachine) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const double flops = matrix_product_flops(dtype, at::kCPU);
    EXPECT_TRUE(std::isfinite(flops)) << at::toString(dtype);
    EXPECT_GT(flops, 2.0 * 1024 * 1024 * 1024 / 600) << at::toString(dtype);
    EXPECT_LT(flops, 2.0 * 1024 * 1024 * 1024 * 1e9) << at::toString(dtype);
  }
}

}  // namespace
}  // namespace retort::bench
