// Linear layers with packed weights against float64, and rows that are the same alone and among others.
#include "retort/ops/packed_linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/support/tolerance.h"

namespace retort {
namespace {

// Sizes at the edges of panels (32 outputs), of tiles (6 or 8 rows) and of blocks (96 rows, 1024 inputs).
constexpr std::array kSizes = {std::array{1, 5, 3},    std::array{2, 64, 32},   std::array{7, 33, 33},
                               std::array{17, 96, 64}, std::array{9, 1024, 31}, std::array{100, 1030, 70}};

TEST(PackedLinear, IsTheProduct) {
  at::manual_seed(1);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const auto& [n, k, m] : kSizes) {
      SCOPED_TRACE(testing::Message() << type << " " << n << " " << k << " " << m);
      const auto x_NK = at::randn({n, k}).to(type), w_MK = at::randn({m, k}).to(type);
      const ops::PackedLinear packed(w_MK);
      const auto found_NM = ops::linear_apart(x_NK, packed);
      EXPECT_EQ(found_NM.scalar_type(), type);
      test::expect_close(found_NM, at::mm(x_NK.to(at::kDouble), w_MK.to(at::kDouble).t()),
                         test::tolerance(type));
    }
}

TEST(PackedLinear, GivesARowTheSameBitsAloneAndAmongOthers) {
  at::manual_seed(2);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const auto& [n, k, m] : kSizes) {
      const auto x_NK = at::randn({n, k}).to(type);
      const ops::PackedLinear packed(at::randn({m, k}).to(type));
      const auto all_NM = ops::linear_apart(x_NK, packed);
      for (int row = 0; row < n; ++row)
        EXPECT_TRUE(at::equal(ops::linear_apart(x_NK.narrow(0, row, 1), packed), all_NM.narrow(0, row, 1)))
            << type << " row " << row << " of " << n;
    }
}

TEST(PackedLinear, OfFloat32ThatHoldsBfloat16NumbersTakesHalfTheBytesAndTheSameBits) {
  at::manual_seed(3);
  const auto x_NK = at::randn({5, 200}), narrow_MK = at::randn({70, 200}).to(at::kBFloat16);
  const ops::PackedLinear of_wide(narrow_MK.to(at::kFloat)), of_narrow(narrow_MK);
  EXPECT_EQ(of_wide.weights().scalar_type(), at::kBFloat16);
  auto nearly_MK = narrow_MK.to(at::kFloat);
  nearly_MK[69][199] = 1.0 + 1.0 / 1024;  // needs one bit more
  const ops::PackedLinear of_float(nearly_MK);
  EXPECT_EQ(of_float.weights().scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(ops::linear_apart(x_NK, of_wide), ops::linear_apart(x_NK, of_narrow)));
  EXPECT_TRUE(at::equal(ops::linear_apart(x_NK, of_wide).narrow(1, 0, 69),
                        ops::linear_apart(x_NK, of_float).narrow(1, 0, 69)));
}

}  // namespace
}  // namespace retort
