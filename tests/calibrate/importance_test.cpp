#include "retort/calibrate/importance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "retort/base/error.h"
#include "retort/calibrate/histogram.h"
#include "retort/calibrate/ranking.h"
#include "retort/model/forward.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"

namespace retort {
namespace {

using calibrate::ChannelRanking;
using calibrate::InputStatistics;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor normal(std::int64_t rows, std::int64_t columns, std::uint64_t stream) {
  base::Random random(3, stream);
  auto values = at::empty({rows, columns}, at::kDouble);
  for (std::int64_t k = 0; k < values.numel(); ++k)
    values.mutable_data_ptr<double>()[k] = random.next_normal();
  return values;
}

// Channels that depend on each other and differ in size, with a mean.
at::Tensor channels(std::int64_t tokens, std::int64_t width) {
  const auto sizes = at::linspace(0.5, 3, width, at::kDouble);
  return (at::mm(normal(tokens, width, 1), at::eye(width, at::kDouble) + 0.4 * normal(width, width, 2)) +
          0.3) *
         sizes;
}

InputStatistics statistics_of(const at::Tensor& x, const at::Tensor& weight,
                              std::vector<std::int64_t> starts = {}) {
  InputStatistics statistics;
  statistics.with_products = true;
  statistics.scale_I = weight.square().sum(at::IntArrayRef{0}).sqrt();
  statistics.add(x, "block", starts);
  return statistics;
}

std::vector<std::int64_t> order_of(const std::vector<double>& scores) {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  return order;
}

// What is left of the output error when the weights that stay are fitted by least squares: a Schur
// complement.
double error_without(const at::Tensor& weight, const at::Tensor& hessian,
                     const std::vector<std::int64_t>& gone) {
  std::vector<std::int64_t> kept;
  for (std::int64_t c = 0; c < weight.size(1); ++c)
    if (std::find(gone.begin(), gone.end(), c) == gone.end()) kept.push_back(c);
  const auto s = at::tensor(gone), k = at::tensor(kept);
  const auto part = [&](const at::Tensor& a, const at::Tensor& b) {
    return hessian.index_select(0, a).index_select(1, b);
  };
  const auto schur = part(s, s) - at::mm(part(s, k), at::linalg_solve(part(k, k), part(k, s)));
  const auto columns = weight.index_select(1, s);
  return 0.5 * (at::mm(columns, schur) * columns).sum().item<double>();
}

at::Tensor damped(const at::Tensor& x) {
  const auto hessian = at::mm(x.t(), x);
  return hessian + 0.01 * at::diag(hessian.diagonal());
}

TEST(Importance, WandaWeighsTheColumnWithTheNormOfItsInput) {
  calibrate::InputStatistics statistics;
  statistics.add(at::tensor({3., 0., 1., 4., 0., 1.}).view({2, 3}), "block 0");
  const auto down = at::tensor({1., 5., -2., -1., 5., 0.}).view({2, 3});
  const auto score = calibrate::channel_scores(calibrate::wanda_score, statistics, down);
  EXPECT_NEAR(score[0], 2 * 5, 1e-6);
  EXPECT_NEAR(score[1], 0, 1e-12);
  EXPECT_NEAR(score[2], 2 * std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(calibrate::channel_scores(calibrate::activation_score, statistics, down)[0], 3.5, 1e-6);
  // Planted outliers: a channel times s whose column is divided by s is the same channel.
  for (const auto ranking : {calibrate::ChannelRanking::wanda, calibrate::ChannelRanking::fluctuation}) {
    base::Random random(3, 3);
    auto values = at::empty({50, 6}, at::kDouble);
    for (std::int64_t k = 0; k < values.numel(); ++k)
      values.mutable_data_ptr<double>()[k] = random.next_normal() + 0.3 * static_cast<double>(k % 6);
    const auto columns = values.narrow(0, 0, 4).contiguous();
    const auto factors = at::tensor({1.0, 1000.0, 1.0, 0.01, 1.0, 7.0}, at::kDouble);
    calibrate::InputStatistics plain, planted;
    plain.add(values, "block");
    planted.add(values * factors, "block");
    const auto before = calibrate::channel_scores(calibrate::score_of(ranking), plain, columns);
    const auto after = calibrate::channel_scores(calibrate::score_of(ranking), planted, columns / factors);
    for (std::size_t c = 0; c < 6; ++c) EXPECT_NEAR(after[c] / before[c], 1, 1e-5);
  }
}

TEST(Importance, HeadsAndHiddenFeaturesScoreAsTheColumnsThatReadThem) {
  const auto config = test::tiny_config(1);
  const auto weights = test::tiny_model(config);
  const auto x = at::randn({20, 16}, at::kDouble);
  calibrate::BlockStatistics statistics;
  for (const auto tap : calibrate::kTaps) statistics[tap].add(x, "block 0");
  const calibrate::RankingOptions options{.winsorise_quantile = 1, .hidden = true};
  const auto scores = calibrate::unit_scores(
      {calibrate::block_scores(options, model::weights_of_block(weights, 0), statistics)});
  const auto norms = x.norm(2, 0);
  const auto columns = [&](const char* name) {
    return weights.tensor(base::join("model.layers.0.", name, ".weight")).abs().sum(0) * norms;
  };
  const auto heads = columns("self_attn.o_proj");
  auto hidden = columns("self_attn.q_proj") + columns("self_attn.k_proj") + columns("self_attn.v_proj") +
                columns("mlp.gate_proj") + columns("mlp.up_proj");
  EXPECT_NEAR(scores.groups[0][0], heads.narrow(0, 0, 8).sum().item<double>(), 1e-9);
  EXPECT_NEAR(scores.groups[0][1], heads.narrow(0, 8, 8).sum().item<double>(), 1e-9);
  const auto channels = columns("mlp.down_proj");
  for (std::int64_t i = 0; i < 16; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_NEAR(scores.hidden[at], hidden[i].item<double>(), 1e-9);
    const auto given = scores.channels[0][at];
    if (std::isinf(given)) continue;  // the massive one
    EXPECT_NEAR(given, channels[i].item<double>(), 1e-9);
  }
}

TEST(Importance, StatisticsOfPartsMergeToThoseOfTheWhole) {
  const auto x = at::randn({10, 4}, at::kDouble);
  calibrate::InputStatistics all, first, second;
  all.add(x, "block 0");
  first.add(x.narrow(0, 0, 3), "block 0");
  second.add(x.narrow(0, 3, 7), "block 0");
  first.merge(second);
  EXPECT_EQ(first.tokens, 10);
  EXPECT_LT(test::largest_difference(first.squares_I, all.squares_I), 1e-12);
  EXPECT_LT(test::largest_difference(first.absolute_I, all.absolute_I), 1e-12);
  EXPECT_TRUE(at::equal(first.maximum_I, all.maximum_I));
}

TEST(Importance, FluctuationIsTheVarianceTimesTheColumn) {
  calibrate::InputStatistics statistics;
  statistics.add(at::tensor({1.0, 5.0, 3.0, 5.0, 8.0, 5.0}, at::kDouble).view({3, 2}), "block");
  const auto down = at::tensor({3.0, 1.0, 4.0, 1.0}, at::kDouble).view({2, 2});
  const auto score = calibrate::channel_scores(calibrate::fluctuation_score, statistics, down);
  EXPECT_NEAR(score[0], (1.0 + 9 + 64) / 3 * 25 - 16.0 * 25, 1e-6);
  EXPECT_NEAR(score[1], 0, 1e-6) << "a constant channel can be replaced by a constant";
}

TEST(Importance, MinitronIsTheNormOverSequencesOfTheMean) {
  InputStatistics statistics;
  const auto x = at::tensor({3., 0., -1., 0., 6., -2.}, at::kDouble).view({3, 2});
  statistics.add(x, "block", std::vector<std::int64_t>{0, 2});
  const auto score =
      calibrate::channel_scores(calibrate::minitron_score, statistics, at::ones({1, 2}, at::kDouble));
  EXPECT_DOUBLE_EQ(score[0], std::hypot(2, 6));
  EXPECT_DOUBLE_EQ(score[1], 2);
}

TEST(Importance, ObsIsTheErrorAfterTheOthersWereFitted) {
  const auto x = channels(60, 7), weight = normal(4, 7, 3);
  const auto statistics = statistics_of(x, weight);
  const auto scores = calibrate::channel_scores(calibrate::obs_score, statistics, weight);
  for (std::int64_t c = 0; c < 7; ++c)
    EXPECT_NEAR(scores[static_cast<std::size_t>(c)] / error_without(weight, damped(x), {c}), 1, 1e-9);
}

TEST(Importance, ObsPutsChannelsWithoutInputLast) {
  auto x = channels(60, 7);
  x.select(1, 4).zero_();
  const auto weight = normal(4, 7, 3);
  const auto scores = calibrate::channel_scores(calibrate::obs_score, statistics_of(x, weight), weight);
  EXPECT_EQ(scores[4], 0);
  EXPECT_GT(scores[3], 0);
}

TEST(Importance, GroupsOfHeadsAreScoredTogether) {
  const architecture::Block shape{.attention = architecture::Attention{4, 2, 3}, .mlp = {}};
  const auto x = channels(80, 12), weight = normal(5, 12, 3);
  model::BlockWeights block{.shape = shape,
                            .attention_norm_D = {},
                            .qkv_XD = {},
                            .output_DY = weight,
                            .mlp_norm_D = {},
                            .gate_up_2ID = {},
                            .down_DI = {}};
  auto statistics = statistics_of(x, weight, {0, 30});
  statistics.gradient_I = at::linspace(-3, 4, 12, at::kDouble);
  const auto scores = [&](ChannelRanking ranking) {
    auto values = calibrate::group_scores(ranking, block, statistics);
    EXPECT_EQ(values.size(), 2U);
    return values;
  };
  for (std::int64_t group = 0; group < 2; ++group) {
    double wanda = 0, activation = 0, minitron = 0, fluctuation = 0, taylor = 0;
    std::vector<std::int64_t> columns;
    for (std::int64_t c = group * 6; c < group * 6 + 6; ++c) {
      columns.push_back(c);
      const auto a = x.select(1, c), w = weight.select(1, c);
      wanda += w.abs().sum().item<double>() * a.norm().item<double>();
      activation += a.abs().mean().item<double>();
      const auto first = a.narrow(0, 0, 30).abs().mean().item<double>(),
                 second = a.narrow(0, 30, 50).abs().mean().item<double>();
      minitron += first * first + second * second;
      const auto variance = a.var(/*unbiased=*/false).item<double>() * w.square().sum().item<double>();
      fluctuation += variance * variance / 6;
      taylor += statistics.gradient_I.select(0, c).item<double>();
    }
    const auto i = static_cast<std::size_t>(group);
    EXPECT_NEAR(scores(ChannelRanking::wanda)[i] / wanda, 1, 1e-6);
    EXPECT_NEAR(scores(ChannelRanking::activation)[i] / activation, 1, 1e-12);
    EXPECT_NEAR(scores(ChannelRanking::minitron)[i] / std::sqrt(minitron), 1, 1e-12);
    EXPECT_NEAR(scores(ChannelRanking::fluctuation)[i] / fluctuation, 1, 1e-5);
    EXPECT_NEAR(scores(ChannelRanking::taylor)[i], std::abs(taylor), 1e-12);
    EXPECT_NEAR(scores(ChannelRanking::obs)[i] / error_without(weight, damped(x), columns), 1, 1e-9);
  }
  block.shape.attention.reset();
  EXPECT_TRUE(calibrate::group_scores(ChannelRanking::wanda, block, statistics).empty());
}

// A channel times s whose column is divided by s is the same channel.
TEST(Importance, PlantedOutliersChangeNoOrder) {
  const std::int64_t width = 24;
  const auto x = channels(400, width), weight = normal(6, width, 3);
  auto factors = at::ones({width}, at::kDouble);
  for (const auto& [channel, factor] :
       {std::pair{2, 1000.0}, {5, 1.0 / 1024}, {6, 64.0}, {11, 0.01}, {17, 3e4}, {20, 7.0}})
    factors.select(0, channel).fill_(factor);
  for (const double quantile : {1.0, 0.99})
    for (const auto ranking : {ChannelRanking::wanda, ChannelRanking::fluctuation, ChannelRanking::obs}) {
      const auto plain = calibrate::channel_scores(
          calibrate::score_of(ranking), calibrate::winsorised(statistics_of(x, weight), quantile), weight);
      const auto planted = calibrate::channel_scores(
          calibrate::score_of(ranking),
          calibrate::winsorised(statistics_of(x * factors, weight / factors), quantile), weight / factors);
      EXPECT_EQ(order_of(plain), order_of(planted)) << static_cast<int>(ranking) << " at " << quantile;
      for (std::size_t c = 0; c < plain.size(); ++c) EXPECT_NEAR(planted[c] / plain[c], 1, 1e-5);
    }
}

TEST(Importance, StandardisedLayersHaveOneScale) {
  const auto scores = calibrate::standardised({{1, 2, 3, kInfinity}, {100, 300, -kInfinity}, {5, 5}, {}});
  EXPECT_NEAR(scores[0][0], -std::sqrt(1.5), 1e-12);
  EXPECT_NEAR(scores[0][2], std::sqrt(1.5), 1e-12);
  EXPECT_EQ(scores[0][3], kInfinity);
  EXPECT_EQ(scores[1], (std::vector<double>{-1, 1, -kInfinity}));
  EXPECT_EQ(scores[2], (std::vector<double>{0, 0}));
  EXPECT_TRUE(scores[3].empty());
}

TEST(Histogram, CountsEveryValueBetweenItsEdges) {
  const auto x = at::tensor({0., 1., -1.124, 1.126, 1e-9, 1e9, 2., 0.24}, at::kDouble).view({8, 1});
  const auto counts = calibrate::magnitude_counts(x, at::ones({1}, at::kDouble));
  ASSERT_EQ(counts.sizes(), (at::IntArrayRef{1, calibrate::kBuckets}));
  const auto count = [&](std::int64_t bucket) { return counts.select(1, bucket).item<std::int64_t>(); };
  const auto one = 1 - calibrate::kLowestOctave * calibrate::kBucketsPerOctave;  // the bucket from 1 to 1.125
  EXPECT_EQ(count(0), 2);
  EXPECT_EQ(count(one), 2);
  EXPECT_EQ(count(one + 1), 1);
  EXPECT_EQ(count(one + 8), 1);
  EXPECT_EQ(count(one - 17), 1) << "0.24 lies between 0.234375 and 0.25";
  EXPECT_EQ(count(calibrate::kBuckets - 1), 1);
  const auto values = calibrate::bucket_values(at::kCPU);
  EXPECT_EQ(values.select(0, one).item<double>(), 1.0625);
  EXPECT_EQ(values.select(0, one - 17).item<double>(), (0.234375 + 0.25) / 2);
  EXPECT_EQ(values.select(0, calibrate::kBuckets - 1).item<double>(), std::ldexp(1, 24));
}

TEST(Histogram, OfManyScaledFeaturesIsThatOfEach) {
  const auto x_NC = channels(300, 150);
  const auto scale_C = normal(1, 150, 3).select(0, 0).exp2();
  const auto counts_CB = calibrate::magnitude_counts(x_NC, scale_C);
  auto expected_CB = at::zeros_like(counts_CB);
  const auto values_NC = x_NC.to(at::kFloat).abs() * scale_C.to(at::kFloat);
  for (std::int64_t n = 0; n < 300; ++n)
    for (std::int64_t c = 0; c < 150; ++c) {
      const auto value = values_NC[n][c].item<float>();
      const auto octave = std::ilogb(value);
      const auto eighth = static_cast<std::int64_t>((std::ldexp(value, -octave) - 1) * 8);
      expected_CB[c][value == 0 ? 0 : 1 + (octave - calibrate::kLowestOctave) * 8 + eighth] += 1;
    }
  EXPECT_TRUE(at::equal(counts_CB, expected_CB));
}

TEST(Histogram, QuantileLiesWithinItsBucket) {
  const auto x = channels(2000, 3);
  const auto counts = calibrate::magnitude_counts(x, at::ones({3}, at::kDouble));
  for (const double quantile : {0.5, 0.99, 0.999, 1.0}) {
    const auto found = calibrate::magnitude_quantile(counts, quantile);
    const auto sorted = std::get<0>(x.abs().sort(0));
    for (std::int64_t c = 0; c < 3; ++c) {
      const auto expected =
          sorted[static_cast<std::int64_t>(std::ceil(quantile * 2000)) - 1][c].item<double>();
      EXPECT_NEAR(found[c].item<double>() / expected, 1, 1.0 / 15) << quantile;
    }
  }
}

TEST(Winsorised, CutsOutliersAndNothingElse) {
  auto x = at::full({1000, 2}, 1.0625, at::kDouble);  // the middle of a bucket, as is 992
  x.select(1, 0).narrow(0, 500, 2).fill_(992);
  const auto weight = at::ones({1, 2}, at::kDouble);
  const auto cut = calibrate::winsorised(statistics_of(x, weight, {0, 500}), 0.99);
  const double square = 1.0625 * 1.0625;
  EXPECT_NEAR(cut.absolute_I[0].item<double>(), 1062.5, 1e-9);
  EXPECT_NEAR(cut.squares_I[0].item<double>(), 1000 * square, 1e-6);
  EXPECT_NEAR(cut.hessian.products_CC[0][0].item<double>(), 1000 * square, 1e-6);
  EXPECT_EQ(cut.absolute_I[1].item<double>(), 1062.5);
  EXPECT_EQ(cut.squares_I[1].item<double>(), 1000 * square);
  EXPECT_EQ(cut.sequence_squares_I[1].item<double>(), 2 * square);
  EXPECT_EQ(cut.hessian.products_CC[1][1].item<double>(), 1000 * square);
  EXPECT_EQ(cut.maximum_I[0].item<double>(), 992) << "massive channels are found by it";
}

// Mean 0.5, standard deviation 0.1, and a few outliers that are nearly all of the sum of squares.
TEST(Winsorised, KeepsTheVarianceOfWhatIsNotCut) {
  at::manual_seed(4);
  for (const double sign : {1.0, -1.0}) {
    const auto plain = sign * (0.5 + 0.1 * at::randn({20000, 1}, at::kDouble));
    auto x = plain.clone();
    x.narrow(0, 0, 16).fill_(sign * 60);
    const auto weight = at::ones({1, 1}, at::kDouble);
    const auto cut = calibrate::winsorised(statistics_of(x, weight, {0}), 0.999);
    const double variance = calibrate::fluctuation_score(cut, weight)[0].item<double>();
    EXPECT_NEAR(variance / plain.var().item<double>(), 1, 0.25);
    // Of all that has no outlier, next to nothing is cut.
    const auto whole = calibrate::winsorised(statistics_of(plain, weight, {0}), 0.999);
    EXPECT_NEAR(calibrate::fluctuation_score(whole, weight)[0].item<double>() / plain.var().item<double>(), 1,
                0.02);
  }
}

}  // namespace
}  // namespace retort
