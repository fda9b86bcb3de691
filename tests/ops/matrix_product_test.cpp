// Products of float32 by oneDNN against float64, in every layout that the model uses.
#include "retort/ops/matrix_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/tolerance.h"

namespace retort {
namespace {

void expect_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  const auto expected_NM = at::mm(a_NK.to(at::kDouble), b_KM.to(at::kDouble));
  for (const auto& found_NM : {ops::matrix_product(a_NK, b_KM), ops::cpu::onednn_product(a_NK, b_KM)}) {
    if (!found_NM.defined()) continue;  // a libtorch without oneDNN
    EXPECT_EQ(found_NM.scalar_type(), a_NK.scalar_type());
    EXPECT_TRUE(found_NM.is_contiguous());
    test::expect_close(found_NM, expected_NM, test::tolerance(at::kFloat));
  }
}

TEST(MatrixProduct, OfWeightsAsTheyStandAndTransposed) {
  at::manual_seed(1);
  // The second shape is large enough for oneDNN, where it serves.
  for (const auto& [n, k, m] : {std::array{3, 5, 7}, std::array{300, 192, 160}}) {
    const auto x_NK = at::randn({n, k}), w_MK = at::randn({m, k}), g_NM = at::randn({n, m});
    expect_product(x_NK, w_MK.t());
    expect_product(g_NM, w_MK);
  }
}

TEST(MatrixProduct, OfPartsOfMatrices) {
  at::manual_seed(2);
  const auto x_NK = at::randn({400, 256}), w_MK = at::randn({300, 256});
  expect_product(x_NK.narrow(0, 10, 333), w_MK.narrow(0, 7, 200).t());
  expect_product(x_NK.narrow(1, 16, 128), w_MK.narrow(1, 16, 128).t());
}

TEST(MatrixProduct, IsTheSameEveryTime) {
  at::manual_seed(3);
  const auto x_NK = at::randn({512, 320}), w_MK = at::randn({192, 320});
  const auto first_NM = ops::matrix_product(x_NK, w_MK.t());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(at::equal(ops::matrix_product(x_NK, w_MK.t()), first_NM));
}

TEST(MatrixProduct, OfOtherTypesIsThatOfLibtorch) {
  at::manual_seed(4);
  for (const auto dtype : {at::kDouble, at::kBFloat16}) {
    const auto x_NK = at::randn({512, 320}).to(dtype), w_MK = at::randn({192, 320}).to(dtype);
    EXPECT_TRUE(at::equal(ops::matrix_product(x_NK, w_MK.t()), at::mm(x_NK, w_MK.t())));
  }
}

}  // namespace
}  // namespace retort
