#include "retort/compress/alps.h"

#include <gtest/gtest.h>

#include <limits>

#include "retort/base/error.h"
#include "retort/base/random.h"
#include "support/models_for_tests.h"

namespace retort {
namespace {

// A layer with correlated inputs: its Hessian and weights.
struct Layer {
  at::Tensor weight_RC, hessian_CC;
  calibrate::HessianFactor factor;
};

at::Tensor random_matrix(std::int64_t rows, std::int64_t columns, base::Random& random) {
  auto values = at::empty({rows, columns}, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<double>()[i] = random.next_normal();
  return values;
}

Layer random_layer(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  base::Random random(3, seed);
  const auto inputs = at::mm(random_matrix(200, columns, random), random_matrix(columns, columns, random));
  const auto hessian = at::mm(inputs.t(), inputs) / 100;
  return {random_matrix(rows, columns, random), hessian, calibrate::factorise(hessian, 0.01, "layer")};
}

// Least squares for the mask of one row, by its own equations.
at::Tensor solved(const at::Tensor& weight_C, const at::Tensor& hessian_CC, const at::Tensor& kept) {
  auto result = at::zeros_like(weight_C);
  const auto left = hessian_CC.index_select(0, kept).index_select(1, kept);
  result.index_copy_(0, kept, at::linalg_solve(left, at::mv(hessian_CC, weight_C).index_select(0, kept)));
  return result;
}

double damped_error(const Layer& layer, const at::Tensor& sparse_RC) {
  return calibrate::output_error(layer.weight_RC - sparse_RC, layer.factor.damped_CC);
}

// The least error of all masks of one row of eight: 36 of them.
double least_error(const Layer& layer) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::vector<std::int64_t>> pairs;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = i + 1; j < 4; ++j) pairs.push_back({i, j});
  for (const auto& a : pairs)
    for (const auto& b : pairs) {
      const auto kept = at::tensor({a[0], a[1], 4 + b[0], 4 + b[1]}, at::kLong);
      const auto sparse = solved(layer.weight_RC[0], layer.factor.damped_CC, kept).unsqueeze(0);
      least = std::min(least, damped_error(layer, sparse));
    }
  return least;
}

TEST(Alps, IsNearerToTheBestMaskThanTheSweep) {
  double best = 0, found = 0, swept = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto layer = random_layer(1, 8, seed);
    const auto sparse = compress::alps(layer.weight_RC, layer.hessian_CC, layer.factor, {}, "layer");
    const double least = least_error(layer), error = damped_error(layer, sparse.weight_RC);
    EXPECT_GT(error, least * (1 - 1e-6)) << "no mask is better than the best";
    best += least, found += error;
    const auto mask = compress::sparsify_weight(layer.weight_RC, layer.hessian_CC, {}, "layer").mask_RC;
    swept += damped_error(
        layer, solved(layer.weight_RC[0], layer.factor.damped_CC, mask[0].nonzero().flatten()).unsqueeze(0));
  }
  EXPECT_LT(found - best, 0.7 * (swept - best));
}

TEST(Alps, KeepsThePatternWithTheLeastSquaresOfItsMask) {
  const auto layer = random_layer(12, 32, 1);
  for (const model::Pattern pattern : {model::Pattern{2, 4}, model::Pattern{1, 4}, model::Pattern{4, 8}}) {
    const auto result = compress::alps(layer.weight_RC, layer.hessian_CC, layer.factor, pattern, "layer");
    EXPECT_TRUE(model::holds(pattern, result.weight_RC));
    EXPECT_TRUE(at::equal(result.weight_RC.ne(0), result.mask_RC));
    auto best_RC = at::zeros_like(result.weight_RC);
    for (std::int64_t row = 0; row < 12; ++row)
      best_RC[row].copy_(
          solved(layer.weight_RC[row], layer.factor.damped_CC, result.mask_RC[row].nonzero().flatten()));
    EXPECT_LT(damped_error(layer, result.weight_RC), 1.00001 * damped_error(layer, best_RC));
    EXPECT_NEAR(result.loss, calibrate::output_error(layer.weight_RC - result.weight_RC, layer.hessian_CC),
                1e-9);
    EXPECT_EQ(result.dampening_fraction, 0.01);
  }
}

TEST(Alps, ADeadInputHasNoWeight) {
  auto layer = random_layer(4, 16, 2);
  layer.hessian_CC.select(0, 5).zero_();
  layer.hessian_CC.select(1, 5).zero_();
  layer.factor = calibrate::factorise(layer.hessian_CC, 0.01, "layer");
  const auto result = compress::alps(layer.weight_RC, layer.hessian_CC, layer.factor, {}, "layer");
  EXPECT_EQ(result.weight_RC.select(1, 5).abs().max().item<double>(), 0);
}

TEST(Alps, RefusesColumnsThatAreNoGroups) {
  const auto layer = random_layer(2, 6, 3);
  EXPECT_THROW(compress::alps(layer.weight_RC, layer.hessian_CC, layer.factor, {}, "layer"),
               base::UsageError);
}

}  // namespace
}  // namespace retort
