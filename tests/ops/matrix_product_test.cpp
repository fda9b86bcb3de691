// Products of float32 by oneDNN against float64, in every layout that the model uses, sums of products, and
// linear layers.
#include "retort/ops/matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <array>

#include "retort/kernels/cpu/onednn_product.h"
#include "retort/kernels/cpu/packed_product.h"
#include "retort/ops/path.h"
#include "support/kernel_tables.h"
#include "tests/support/tolerance.h"

namespace retort {
namespace {

void expect_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  const auto expected_NM = at::mm(a_NK.to(at::kDouble), b_KM.to(at::kDouble));
  for (const auto& found_NM : {ops::matrix_product(a_NK, b_KM), kernels::cpu::onednn_product(a_NK, b_KM)}) {
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

TEST(MatrixProduct, OfDoubleIsThatOfLibtorch) {
  at::manual_seed(4);
  const auto x_NK = at::randn({512, 320}, at::kDouble), w_MK = at::randn({192, 320}, at::kDouble);
  EXPECT_TRUE(at::equal(ops::matrix_product(x_NK, w_MK.t()), at::mm(x_NK, w_MK.t())));
}

// Whole pieces and rests of each side; a sum is rounded once, after all of it was added up.
TEST(MatrixProduct, OfBfloat16IsRoundedOnce) {
  at::manual_seed(4);
  for (const auto& [n, k, m] : {std::array{1, 1, 1}, std::array{512, 320, 192}, std::array{40, 900, 300},
                                std::array{3, 64, 3000}, std::array{7, 0, 5}}) {
    const auto x_NK = at::randn({n, k + 3}).to(at::kBFloat16).narrow(1, 2, k);
    const auto w_MK = at::randn({m, k}).to(at::kBFloat16);
    for (const auto& b_KM : {w_MK.t(), w_MK.t().contiguous()}) {
      const auto found_NM = ops::matrix_product(x_NK, b_KM);
      EXPECT_EQ(found_NM.scalar_type(), at::kBFloat16);
      test::expect_close(found_NM, at::mm(x_NK.to(at::kDouble), b_KM.to(at::kDouble)),
                         test::tolerance(at::kBFloat16));
    }
  }
}

// Parts of wider matrices, small and large.
TEST(TransposedProduct, IsAddedInTheTypeOfTheSum) {
  at::manual_seed(7);
  for (const auto& [n, m, k] : {std::array{70, 66, 32}, std::array{1100, 130, 544}, std::array{33, 64, 64},
                                std::array{128, 33, 64}, std::array{128, 64, 33}, std::array{700, 1, 64},
                                std::array{3, 5, 7}, std::array{16, 2000, 1100}, std::array{3000, 2000, 1}})
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto a_NM = at::randn({n, m + 8}).to(type).narrow(1, 0, m), b_NK = at::randn({n, k}).to(type);
      const auto before_MK = at::randn({m, k}), sum_MK = before_MK.clone();
      ops::add_transposed_product(sum_MK, a_NM, b_NK);
      const auto expected_MK =
          before_MK.to(at::kDouble) + at::mm(a_NM.to(at::kDouble).t(), b_NK.to(at::kDouble));
      const bool rounded = type == at::kBFloat16 && ops::path_of(at::kCPU) != ops::Path::cpu;
      test::expect_close(sum_MK, expected_MK, test::tolerance(rounded ? type : at::kFloat));
    }
}

// Whole tiles and rests of each side, several blocks, parts of wider matrices.
void expect_packed_products(at::ScalarType type) {
  at::manual_seed(8);
  for (const auto& [n, m, k] : {std::array{1, 1, 1}, std::array{5, 7, 64}, std::array{300, 193, 65},
                                std::array{256, 192, 512}, std::array{513, 200, 1100}}) {
    const auto a_NM = at::randn({n, m + 3}).to(type).narrow(1, 1, m);
    const auto b_NK = at::randn({n, k + 5}).to(type).narrow(1, 2, k);
    const auto before_MK = at::randn({m, k + 1});
    const auto expected_MK =
        before_MK.narrow(1, 0, k).to(at::kDouble) + at::mm(a_NM.to(at::kDouble).t(), b_NK.to(at::kDouble));
    at::Tensor first;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      const auto sum_MK = before_MK.clone();
      kernels::cpu::add_packed_product(sum_MK.narrow(1, 0, k), a_NM, b_NK);
      test::expect_close(sum_MK.narrow(1, 0, k), expected_MK, test::tolerance(at::kFloat));
      test::expect_identical(sum_MK.select(1, k), before_MK.select(1, k));
      if (!first.defined()) first = sum_MK;
      test::expect_identical(sum_MK, first);
    }
    at::set_num_threads(2);
  }
}

TEST(PackedProduct, IsAddedToTheSumWithTheSameBitsForAnyNumberOfThreads) {
  expect_packed_products(at::kFloat);
}

// The product itself is never rounded to bfloat16.
TEST(PackedProduct, OfBfloat16IsAddedInFloat32) {
  if (kernels::pair_kernels()) expect_packed_products(at::kBFloat16);  // else nothing computes it so
}

TEST(GramProduct, IsSymmetricAndThatOfDouble) {
  at::manual_seed(9);
  for (const auto& [n, c] : {std::pair{3, 1}, std::pair{70, 33}, std::pair{500, 300}, std::pair{300, 700}})
    for (const auto& [inputs, sums] : {std::pair{at::kFloat, at::kDouble}, std::pair{at::kFloat, at::kFloat},
                                       std::pair{at::kDouble, at::kDouble}}) {
      const auto x_NC = at::randn({n, c}).to(inputs);
      const auto before_CC = at::mm(x_NC.t(), x_NC).to(sums);
      const auto sum_CC = (before_CC + before_CC.t()) / 2, doubled_CC = sum_CC.clone();
      ops::add_gram_product(doubled_CC, x_NC);
      const auto expected_CC =
          sum_CC.to(at::kDouble) + at::mm(x_NC.to(at::kDouble).t(), x_NC.to(at::kDouble));
      test::expect_close(doubled_CC, expected_CC, test::tolerance(inputs));
      if (ops::path_of(at::kCPU) == ops::Path::cpu)
        test::expect_identical(doubled_CC, doubled_CC.t().contiguous());
    }
}

TEST(Linear, EqualsTheProductInDoubleForOneRowAndForMany) {
  at::manual_seed(6);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const std::int64_t rows : {0, 1, 2, 17})
      for (const auto& [k, m] : {std::pair{5, 7}, std::pair{257, 1031}}) {
        const auto x_NK = at::randn({rows, k}).to(type), w_MK = at::randn({m, k}).to(type);
        const auto y_NM = ops::linear(x_NK, w_MK);
        EXPECT_EQ(y_NM.scalar_type(), type);
        test::expect_close(y_NM, at::mm(x_NK.to(at::kDouble), w_MK.to(at::kDouble).t()),
                           test::tolerance(type));
      }
}

}  // namespace
}  // namespace retort
