// Packed 2:4 rows against the dense product in float64.
#include "retort/ops/two_four.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "retort/kernels/cpu/matrix_vector.h"
#include "retort/kernels/cpu/two_four.h"
#include "retort/kernels/cpu/vector_kernels.h"
#include "retort/ops/matrix_product.h"
#include "support/kernel_tables.h"
#include "support/tolerance.h"

namespace retort {
namespace {

// Random rows of which two random places of each group are kept; every sixth group is zero.
at::Tensor sparse(std::int64_t rows, std::int64_t inputs, at::ScalarType type) {
  const auto groups = inputs / 4;
  const auto order_RG4 = at::rand({rows, groups, 4}).argsort(std::int64_t{-1}, /*descending=*/false);
  const auto kept_RG4 = order_RG4.lt(2).logical_and(at::rand({rows, groups, 1}).gt(1. / 6));
  return (at::randn({rows, groups, 4}) * kept_RG4).view({rows, inputs}).to(type);
}

at::Tensor product(const at::Tensor& x_NK, const at::Tensor& w_MK) {
  return at::mm(x_NK.to(at::kDouble), w_MK.to(at::kDouble).t());
}

constexpr std::int64_t kInputs[] = {4, 8, 60, 64, 68, 256, 1000};
constexpr std::int64_t kRows[] = {1, 7, 8, 9, 40};

// Kernels of every instruction set; x fills whole pieces.
TEST(TwoFour, ByValueEqualsTheProductInDoubleOnEveryInstructionSet) {
  int compared = 0;
  test::for_every_kernel([&](auto c) {
    if (!c.kernels.two_four) return;
    for (const auto inputs : {64, 320}) {
      const auto w_MK = sparse(24, inputs, c.kType);
      const auto x_K = at::randn({inputs}), y_M = at::empty({24});
      const auto packed = kernels::cpu::two_four_packed(w_MK, kernels::cpu::Choices::by_value);
      ASSERT_TRUE(packed.defined());
      c.kernels.two_four(
          {static_cast<const std::byte*>(packed.const_data_ptr()), 3, inputs / 64, c.statistics(x_K)},
          c.statistics(y_M));
      test::expect_close(y_M, at::mv(w_MK.to(at::kDouble), x_K.to(at::kDouble)), test::tolerance(at::kFloat));
      ++compared;
    }
  });
  if (ops::packs_two_four(at::kCPU, at::kFloat)) {
    EXPECT_GE(compared, 4);
  }
}

TEST(TwoFour, ByPairEqualsTheProductInDouble) {
  const auto* pairs = kernels::pair_kernels();
  if (!pairs) return;  // a processor without AVX-512 BF16 has nothing to test
  at::manual_seed(2);
  for (const auto inputs : {64, 320}) {
    const auto w_MK = sparse(24, inputs, at::kBFloat16), x_K = at::randn({inputs}).to(at::kBFloat16);
    const auto packed = kernels::cpu::two_four_packed(w_MK, kernels::cpu::Choices::by_pair),
               y_M = at::empty({24});
    std::vector<std::uint32_t> words(static_cast<std::size_t>(2 * inputs));
    pairs->pairs_of_groups(static_cast<const kernels::Bf16*>(x_K.const_data_ptr()), inputs / 4, words.data());
    pairs->two_four({static_cast<const std::byte*>(packed.const_data_ptr()), 3, inputs / 64, words.data()},
                    y_M.mutable_data_ptr<float>());
    test::expect_close(y_M, at::mv(w_MK.to(at::kDouble), x_K.to(at::kDouble)), test::tolerance(at::kFloat));
  }
}

TEST(TwoFour, EqualsTheProductInDoubleForAnySize) {
  at::manual_seed(3);
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const auto inputs : kInputs)
      for (const auto rows : kRows) {
        SCOPED_TRACE(testing::Message() << type << " " << rows << " x " << inputs);
        const auto w_MK = sparse(rows, inputs, type), x_1K = at::randn({1, inputs}).to(type);
        if (!ops::packs_two_four(at::kCPU, type)) continue;
        const ops::TwoFourRows packed[] = {ops::two_four_rows(w_MK, 0, rows)};
        ASSERT_TRUE(packed[0].packed.defined());
        EXPECT_EQ(packed[0].packed.numel(), ops::two_four_bytes(rows, inputs, w_MK.element_size()));
        const auto y_1M = ops::linear(x_1K, w_MK, packed);
        EXPECT_EQ(y_1M.scalar_type(), type);
        test::expect_close(y_1M, product(x_1K, w_MK), test::tolerance(type));
      }
}

// Weights of bfloat16 by value, as on a processor that multiplies no pairs; some rows are not packed.
TEST(TwoFour, ByValueOfBfloat16EqualsTheProductInDouble) {
  if (!kernels::vector_tables().bf16.two_four) return;  // no kernels without the vectors of AVX2
  at::manual_seed(6);
  const auto w_MK = sparse(30, 132, at::kBFloat16), x_1K = at::randn({1, 132});
  const std::vector<ops::TwoFourRows> packed = {
      {4, 19, kernels::cpu::two_four_packed(w_MK.narrow(0, 4, 19), kernels::cpu::Choices::by_value)}};
  test::expect_close(kernels::cpu::matrix_vector(x_1K, w_MK, packed), product(x_1K, w_MK),
                     test::tolerance(at::kFloat));
}

// Of w, packed rows are not read, and all others are.
TEST(TwoFour, RowsOfAMatrixThatIsDenseElsewhere) {
  at::manual_seed(4);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    if (!ops::packs_two_four(at::kCPU, type)) continue;
    auto w_MK = at::randn({61, 132}).to(type);
    w_MK.narrow(0, 5, 19).copy_(sparse(19, 132, type));
    w_MK.narrow(0, 40, 10).copy_(sparse(10, 132, type));
    const std::vector<ops::TwoFourRows> packed = {ops::two_four_rows(w_MK, 5, 19),
                                                  ops::two_four_rows(w_MK, 40, 10)};
    const auto hidden_MK = w_MK.clone();
    hidden_MK.narrow(0, 5, 19).fill_(NAN);
    hidden_MK.narrow(0, 40, 10).fill_(NAN);
    const auto x_1K = at::randn({1, 132}).to(type), x_NK = at::randn({3, 132}).to(type);
    test::expect_close(ops::linear(x_1K, hidden_MK, packed), product(x_1K, w_MK), test::tolerance(type));
    test::expect_identical(ops::linear(x_NK, w_MK, packed), ops::linear(x_NK, w_MK));  // several rows of x
  }
}

TEST(TwoFour, IsTheSameForAnyNumberOfThreads) {
  at::manual_seed(5);
  const auto threads = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    if (!ops::packs_two_four(at::kCPU, type)) continue;
    const auto w_MK = sparse(3001, 300, type), x_1K = at::randn({1, 300}).to(type);
    at::set_num_threads(1);
    const ops::TwoFourRows packed[] = {ops::two_four_rows(w_MK, 0, 3001)};
    const auto expected_1M = ops::linear(x_1K, w_MK, packed);
    at::set_num_threads(3);
    for (int i = 0; i < 50; ++i) test::expect_identical(ops::linear(x_1K, w_MK, packed), expected_1M);
  }
  at::set_num_threads(threads);
}

TEST(TwoFour, DoesNotPackWhatIsNot) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    if (!ops::packs_two_four(at::kCPU, type)) continue;
    auto w_MK = sparse(20, 64, type);
    w_MK[13].narrow(0, 60, 4).fill_(1e-30);
    EXPECT_FALSE(ops::two_four_rows(w_MK, 0, 20).packed.defined());
    EXPECT_TRUE(ops::two_four_rows(w_MK, 0, 13).packed.defined());
    EXPECT_FALSE(ops::two_four_rows(at::zeros({3, 6}, type), 0, 3).packed.defined());  // no whole groups
    EXPECT_TRUE(ops::two_four_rows(at::full({3, 8}, -0.0, type), 0, 3).packed.defined());
  }
  EXPECT_FALSE(ops::packs_two_four(at::kCPU, at::kDouble));
}

}  // namespace
}  // namespace retort
