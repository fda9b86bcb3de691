#include "retort/compress/sparse_gpt.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/compress/polish.h"
#include "support/json_for_tests.h"
#include "support/models_for_tests.h"
#include "support/outside_data.h"
#include "support/random_text.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using calibrate::HessianSums;
using compress::sparsify_weight;
using compress::SweepOptions;

struct Golden {
  base::Json json = test::read_json(test::source() / "tests" / "compress" / "golden_sparse_gpt.json");
  at::Tensor weight = test::matrix(json["W"]), hessian = test::matrix(json["H"]),
             out = test::matrix(json["W_out"]), removed = test::matrix(json["mask"]);

  // ||(W - What) X||^2 / sequences.
  double error(const at::Tensor& sparse) const {
    const auto change = weight - sparse;
    return 0.5 * at::mm(change, hessian).mul(change).sum().item<double>();
  }
};

// 2:4 by a score alone: the two least of each group become 0.
at::Tensor pruned_by(const at::Tensor& weight, const at::Tensor& score) {
  const auto order = std::get<1>(score.unflatten(1, {-1, 4}).sort(true, -1, false));
  auto keep = at::ones_like(score).unflatten(1, {-1, 4});
  keep.scatter_(-1, order.narrow(-1, 0, 2), 0);
  return weight * keep.flatten(1);
}

// The best weights for a given mask.
at::Tensor least_squares(const at::Tensor& weight, const at::Tensor& hessian, const at::Tensor& keep) {
  auto out = at::zeros_like(weight);
  for (std::int64_t r = 0; r < weight.size(0); ++r) {
    const auto kept = keep[r].nonzero().flatten();
    const auto left = hessian.index_select(0, kept).index_select(1, kept);
    const auto right = at::mv(hessian, weight[r]).index_select(0, kept);
    out[r].index_copy_(0, kept, at::linalg_solve(left, right));
  }
  return out;
}

at::Tensor random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t stream) {
  base::Random random(11, stream);
  auto values = at::empty({rows, cols}, at::kDouble);
  for (std::int64_t i = 0; i < rows * cols; ++i) values.mutable_data_ptr<double>()[i] = random.next_normal();
  return values;
}

TEST(SparseGpt, ReproducesTheGoldenCase) {
  const Golden golden;
  const auto result = sparsify_weight(golden.weight, golden.hessian, SweepOptions{}, "layer");
  EXPECT_TRUE(at::equal(result.mask_RC.logical_not(), golden.removed.ne(0)));
  EXPECT_LT(test::largest_difference(result.weight_RC, golden.out), 1e-9);
  EXPECT_NEAR(result.loss, 1319.2297250811698, 1e-6);
  EXPECT_LT(result.identity_residual, 1e-9);
  EXPECT_NEAR(golden.error(result.weight_RC), 1141.4491660306996, 1e-6);
  EXPECT_EQ(result.dampening_fraction, 0.01);
}

TEST(SparseGpt, LossIsTheDampedErrorOfTheWeights) {
  const Golden golden;
  const auto result = sparsify_weight(golden.weight, golden.hessian, SweepOptions{}, "layer");
  const auto change = golden.weight - result.weight_RC;
  const auto damped = golden.hessian + 0.01 * golden.hessian.diagonal().mean() * at::eye(32, at::kDouble);
  const double expected = 0.5 * at::mm(change, damped).mul(change).sum().item<double>();
  EXPECT_NEAR(expected, 1319.2297250811698, 1e-6);
  EXPECT_NEAR(result.loss / expected, 1, 1e-9);
}

TEST(SparseGpt, BlockSizeDoesNotChangeTheResult) {
  const Golden golden;
  const auto whole = sparsify_weight(golden.weight, golden.hessian, SweepOptions{}, "layer");
  for (const std::int64_t size : {4, 8, 16, 32}) {
    const auto result =
        sparsify_weight(golden.weight, golden.hessian, {.pattern = {}, .block_size = size}, "layer");
    EXPECT_LT(test::largest_difference(result.weight_RC, whole.weight_RC), 1e-13) << size;
    EXPECT_TRUE(at::equal(result.mask_RC, whole.mask_RC)) << size;
  }
}

TEST(SparseGpt, ErrsLessThanSimplerMethodsAndMoreThanLeastSquares) {
  const Golden golden;
  const auto result = sparsify_weight(golden.weight, golden.hessian, SweepOptions{}, "layer");
  const auto input_norm = golden.hessian.diagonal().sqrt();
  const auto& errors = golden.json["errors"];
  const double magnitude = golden.error(pruned_by(golden.weight, golden.weight.abs()));
  const double wanda = golden.error(pruned_by(golden.weight, golden.weight.abs() * input_norm));
  const double mask_only = golden.error(golden.weight * result.mask_RC);
  const double full = golden.error(result.weight_RC);
  const double best = golden.error(least_squares(golden.weight, golden.hessian, result.mask_RC));
  EXPECT_NEAR(magnitude, errors["magnitude"].get<double>(), 1e-6);
  EXPECT_NEAR(wanda, errors["wanda"].get<double>(), 1e-6);
  EXPECT_NEAR(mask_only, errors["sparsegpt_mask_only"].get<double>(), 1e-6);
  EXPECT_NEAR(full, errors["sparsegpt_full"].get<double>(), 1e-6);
  EXPECT_NEAR(best, errors["exact_LS_on_same_mask"].get<double>(), 1e-4);
  EXPECT_TRUE(magnitude > wanda && wanda > mask_only && mask_only > full && full > best);
}

TEST(SparseGpt, MasksByScoreAreTheSimplerMethods) {
  const Golden golden;
  const auto& errors = golden.json["errors"];
  const auto error = [&](compress::SparseMethod method) {
    const auto result = compress::mask_weight(golden.weight, golden.hessian, method, {}, "layer");
    EXPECT_TRUE(at::equal(result.weight_RC, golden.weight * result.mask_RC));
    EXPECT_NEAR(result.loss, golden.error(result.weight_RC), 1e-9);
    return result.loss;
  };
  EXPECT_NEAR(error(compress::SparseMethod::magnitude), errors["magnitude"].get<double>(), 1e-6);
  EXPECT_NEAR(error(compress::SparseMethod::wanda), errors["wanda"].get<double>(), 1e-6);
}

TEST(SparseGpt, PolishIsLeastSquaresForTheMask) {
  const Golden golden;
  const auto result = sparsify_weight(golden.weight, golden.hessian, SweepOptions{}, "layer");
  const auto polished =
      compress::least_squares_polish(golden.weight, result.weight_RC, result.mask_RC, golden.hessian,
                                     {.iterations = 2000, .tolerance = 1e-12});
  EXPECT_NEAR(golden.error(polished.weight_RC), golden.json["errors"]["exact_LS_on_same_mask"].get<double>(),
              1e-4);
  EXPECT_TRUE(at::equal(polished.weight_RC.ne(0), result.mask_RC));
  // Few steps improve already, and none makes it worse.
  double last = golden.error(result.weight_RC);
  for (const std::int64_t steps : {1, 4, 16, 64}) {
    const auto some = compress::least_squares_polish(golden.weight, result.weight_RC, result.mask_RC,
                                                     golden.hessian, {.iterations = steps, .tolerance = 0});
    EXPECT_LT(golden.error(some.weight_RC), last) << steps;
    last = golden.error(some.weight_RC);
  }
}

TEST(SparseGpt, ExactChoiceIsTheBestOfAllSets) {
  // A single group: the sweep's loss is that of the best least squares over the six sets, row by row.
  const auto x = random_matrix(40, 4, 5), mix = random_matrix(4, 4, 6), weight = random_matrix(50, 4, 7);
  const auto inputs = at::mm(x, mix);
  const auto hessian = at::mm(inputs.t(), inputs);
  const auto result =
      sparsify_weight(weight, hessian, {.pattern = {}, .mask = compress::MaskChoice::exact}, "layer");
  const auto damped = hessian + 0.01 * hessian.diagonal().mean() * at::eye(4, at::kDouble);
  double best = 0;
  for (std::int64_t r = 0; r < 50; ++r) {
    double least = 1e300;
    for (int a = 0; a < 4; ++a)
      for (int b = a + 1; b < 4; ++b) {
        auto keep = at::zeros({1, 4}, at::kDouble);
        keep[0][a] = keep[0][b] = 1;
        const auto row = weight.narrow(0, r, 1);
        const auto change = row - least_squares(row, damped, keep);
        least = std::min(least, 0.5 * at::mm(change, damped).mul(change).sum().item<double>());
      }
    best += least;
  }
  EXPECT_NEAR(result.loss, best, 1e-9 * best);
  const auto saliency = sparsify_weight(weight, hessian, SweepOptions{}, "layer");
  EXPECT_GT(saliency.loss, 1.01 * result.loss) << "the case separates the two";
}

TEST(SparseGpt, ExactChoiceKeepsThePatternAndTheIdentity) {
  const Golden golden;
  for (const model::Pattern pattern : {model::Pattern{2, 4}, model::Pattern{1, 4}, model::Pattern{4, 8}}) {
    const auto result = sparsify_weight(golden.weight, golden.hessian,
                                        {.pattern = pattern, .mask = compress::MaskChoice::exact}, "layer");
    EXPECT_TRUE(model::holds(pattern, result.weight_RC));
    EXPECT_LT(result.identity_residual, 1e-9);
  }
  const auto wide = random_matrix(2, 32, 9);
  EXPECT_THROW(sparsify_weight(wide, golden.hessian,
                               {.pattern = {8, 16}, .mask = compress::MaskChoice::exact}, "layer"),
               base::UsageError);
}

TEST(SparseGpt, RowsMayBeSplit) {
  const Golden golden;
  for (const auto mask : {compress::MaskChoice::saliency, compress::MaskChoice::exact}) {
    const SweepOptions options{.pattern = {}, .mask = mask};
    const auto whole = sparsify_weight(golden.weight, golden.hessian, options, "layer");
    for (const std::int64_t first : {1, 2, 5}) {
      const auto top = sparsify_weight(golden.weight.narrow(0, 0, first), golden.hessian, options, "layer");
      const auto rest =
          sparsify_weight(golden.weight.narrow(0, first, 6 - first), golden.hessian, options, "layer");
      EXPECT_LT(test::largest_difference(at::cat({top.weight_RC, rest.weight_RC}), whole.weight_RC), 1e-12);
      EXPECT_TRUE(at::equal(at::cat({top.mask_RC, rest.mask_RC}), whole.mask_RC));
      EXPECT_NEAR(top.loss + rest.loss, whole.loss, 1e-9 * whole.loss);
    }
    // A row a hundred thousand times larger than the others must not stop them, nor they it.
    auto weight = golden.weight.clone();
    weight[3].mul_(1e5);
    const auto polished = [&](std::int64_t first, std::int64_t rows) {
      const auto part = [&](const at::Tensor& all_RC) { return all_RC.narrow(0, first, rows); };
      const auto sparse_RC = whole.weight_RC * whole.mask_RC;
      return compress::least_squares_polish(part(weight), part(sparse_RC), part(whole.mask_RC),
                                            golden.hessian, {.tolerance = 1e-2})
          .weight_RC;
    };
    const auto together = polished(0, 6);
    for (std::int64_t row = 0; row < 6; ++row) {
      const auto alone = polished(row, 1), beside = together.narrow(0, row, 1);
      EXPECT_LT(test::largest_difference(alone, beside), 1e-9 * beside.abs().max().item<double>()) << row;
    }
  }
}

TEST(SparseGpt, DampeningMakesFewInputsEnough) {
  const Golden golden;
  HessianSums sums;
  calibrate::accumulate_hessian(sums, test::matrix(golden.json["few_inputs"]).t(), 1);
  const auto hessian = calibrate::hessian_of(sums, "layer");
  EXPECT_EQ(at::linalg_matrix_rank(hessian, 1e-9, true).item<std::int64_t>(), 10);
  EXPECT_FALSE(calibrate::try_factorise(hessian, 0).has_value());
  const auto result = sparsify_weight(golden.weight, hessian, SweepOptions{}, "layer");
  EXPECT_NEAR(result.loss, golden.json["few_inputs_loss"].get<double>(), 1e-4);
  EXPECT_EQ(result.dampening_fraction, 0.01);
}

TEST(SparseGpt, AgreesWithTheReference) {
  const auto cases = test::read_json(test::oracles("prune") / "sparse_gpt.json");
  ASSERT_EQ(cases.size(), 3u);
  for (const auto& one : cases) {
    HessianSums sums;
    for (const auto& batch : one["inputs"])  // tokens x columns, each one sequence
      calibrate::accumulate_hessian(sums, test::matrix(batch), 1);
    const auto hessian = calibrate::hessian_of(sums, "layer");
    test::expect_close(hessian, test::matrix(one["hessian"]), test::tolerance(at::kDouble));
    const auto result = sparsify_weight(test::matrix(one["weight"]), hessian, SweepOptions{}, "layer");
    EXPECT_LT(test::largest_difference(result.weight_RC, test::matrix(one["sparse"])), 1e-10);
    EXPECT_TRUE(at::equal(result.mask_RC, test::matrix(one["kept"]).ne(0)));
    EXPECT_NEAR(result.loss / one["loss"].get<double>(), 1, 1e-10);
    const auto error = compress::output_error(test::matrix(one["weight"]), result.weight_RC, hessian);
    EXPECT_NEAR(error.relative(), one["relative_error"].get<double>(), 1e-10);
  }
}

TEST(SparseGpt, ParallelSumsAddUp) {
  const auto x = random_matrix(60, 8, 1);
  HessianSums all, first, second;
  calibrate::accumulate_hessian(all, x, 6);
  calibrate::accumulate_hessian(first, x.narrow(0, 0, 20), 2);
  calibrate::accumulate_hessian(second, x.narrow(0, 20, 40), 4);
  const auto sum = (first.products_CC + second.products_CC) * (2.0 / 6);
  EXPECT_LT(test::largest_difference(calibrate::hessian_of(all, "layer"), sum), 1e-12);
}

TEST(SparseGpt, SumsOfFloat32InputsAreKeptInFloat64) {
  HessianSums sums;
  calibrate::accumulate_hessian(sums, random_matrix(60, 8, 1).to(at::kFloat), 6);
  EXPECT_EQ(sums.products_CC.scalar_type(), at::kDouble);
}

TEST(SparseGpt, DeadColumnsBecomeZeroAndThePatternHolds) {
  auto x = random_matrix(64, 16, 2);
  for (const std::int64_t dead : {1, 4, 5, 6}) x.select(1, dead).zero_();
  HessianSums sums;
  calibrate::accumulate_hessian(sums, x, 4);
  const auto weight = random_matrix(5, 16, 3);
  const auto result = sparsify_weight(weight, calibrate::hessian_of(sums, "layer"), SweepOptions{}, "layer");
  for (const std::int64_t dead : {1, 4, 5, 6})
    EXPECT_EQ(result.weight_RC.select(1, dead).abs().max().item<double>(), 0) << dead;
  EXPECT_TRUE(model::holds({2, 4}, result.weight_RC));
  EXPECT_LT(result.identity_residual, 1e-12);
  EXPECT_TRUE(result.weight_RC.select(1, 7).ne(0).all().item<bool>())
      << "where three are dead, all rows keep it";
}

TEST(SparseGpt, SparseWeightsStayAsTheyAre) {
  const Golden golden;
  const auto once = sparsify_weight(golden.weight, golden.hessian, SweepOptions{}, "layer");
  const auto twice = sparsify_weight(once.weight_RC, golden.hessian, SweepOptions{}, "layer");
  EXPECT_TRUE(at::equal(once.weight_RC, twice.weight_RC));
  EXPECT_EQ(twice.loss, 0);
}

TEST(SparseGpt, EqualScoresRemoveTheFirstColumns) {
  const auto result =
      sparsify_weight(at::ones({3, 8}, at::kDouble), at::eye(8, at::kDouble), SweepOptions{}, "layer");
  const auto expected = at::tensor({0., 0., 1., 1., 0., 0., 1., 1.}, at::kDouble).expand({3, 8});
  EXPECT_TRUE(at::equal(result.weight_RC, expected));
}

TEST(SparseGpt, OtherPatternsKeepWhatTheySay) {
  const Golden golden;
  const auto result = sparsify_weight(golden.weight, golden.hessian, {.pattern = {1, 8}}, "layer");
  EXPECT_EQ(result.mask_RC.sum().item<std::int64_t>(), 6 * 4);
  EXPECT_TRUE(model::holds({1, 8}, result.weight_RC));
}

TEST(SparseGpt, Float32KeepsTheIdentityToItsPrecision) {
  const Golden golden;
  const auto result =
      sparsify_weight(golden.weight.to(at::kFloat), golden.hessian.to(at::kFloat), SweepOptions{}, "layer");
  EXPECT_EQ(result.weight_RC.scalar_type(), at::kFloat);
  EXPECT_NEAR(result.loss, 1319.22972508, 0.05);
  EXPECT_LT(result.identity_residual, 1e-4);
}

// 1 on the diagonal and `beside` elsewhere: the least eigenvalue is 1 - beside.
at::Tensor indefinite(double beside) {
  return at::full({8, 8}, beside, at::kDouble).fill_diagonal_(1.0);
}

TEST(SparseGpt, DampeningClimbsWhenTheFactorisationFails) {
  EXPECT_FALSE(calibrate::try_factorise(indefinite(1.05), 0).has_value());
  EXPECT_FALSE(calibrate::try_factorise(indefinite(1.05), 0.01).has_value());
  const auto factor = calibrate::factorise(indefinite(1.05), 0.01, "layer");
  EXPECT_DOUBLE_EQ(factor.dampening_fraction, 0.1);
  const auto product = at::mm(at::mm(factor.upper_CC, factor.damped_CC), factor.upper_CC.t());
  EXPECT_LT(test::largest_difference(product, at::eye(8, at::kDouble)), 1e-10);
}

TEST(SparseGpt, NoDampeningEverMeansTheIdentity) {
  const auto message = test::message_of<base::ValidationError>(
      [] { sparsify_weight(random_matrix(2, 8, 4), indefinite(3), SweepOptions{}, "the.layer"); });
  EXPECT_NE(message.find("the.layer"), std::string::npos) << message;
}

TEST(SparseGpt, RefusesInputsThatAreNotFiniteOrAllZero) {
  HessianSums bad, zero;
  auto x = random_matrix(6, 8, 5);
  x[2][3] = std::numeric_limits<double>::quiet_NaN();
  calibrate::accumulate_hessian(bad, x, 1);
  calibrate::accumulate_hessian(zero, at::zeros({6, 8}, at::kDouble), 1);
  for (const auto* sums : {&bad, &zero}) {
    const auto message =
        test::message_of<base::ValidationError>([&] { calibrate::hessian_of(*sums, "the.layer"); });
    EXPECT_NE(message.find("the.layer"), std::string::npos) << message;
  }
}

TEST(SparseGpt, RefusesColumnsThatAreNoMultipleOfTheGroup) {
  const auto message = test::message_of<base::UsageError>(
      [] { sparsify_weight(random_matrix(2, 6, 4), at::eye(6, at::kDouble), SweepOptions{}, "the.layer"); });
  EXPECT_NE(message.find("the.layer"), std::string::npos) << message;
}

}  // namespace
}  // namespace retort
