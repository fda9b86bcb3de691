#include "retort/calibrate/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "retort/base/error.h"
#include "retort/compress/surgery.h"
#include "retort/prune/part_scores.h"
#include "retort/prune/plan.h"
#include "retort/prune/searched.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/stepwise_options.h"

namespace retort {
namespace {

using calibrate::ChannelRanking;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kRankings = {ChannelRanking::wanda,       ChannelRanking::activation,
                                  ChannelRanking::fluctuation, ChannelRanking::minitron,
                                  ChannelRanking::taylor,      ChannelRanking::obs};
constexpr std::array kInvariant = {ChannelRanking::wanda, ChannelRanking::fluctuation, ChannelRanking::taylor,
                                   ChannelRanking::obs};

std::string name_of(std::int64_t block, const char* layer) {
  return "model.layers." + std::to_string(block) + "." + layer + ".weight";
}

std::vector<calibrate::Batch> batches_of(const model::Weights& weights) {
  return calibrate::calibration_batches(test::random_domains(40, 6, 48), weights.config, at::kCPU, 100);
}

std::vector<calibrate::BlockScores> scores_of(const model::Weights& weights, ChannelRanking ranking) {
  return calibrate::measured_scores(weights, batches_of(weights), {.ranking = ranking});
}

template <typename Score>
std::vector<std::size_t> order_of(const std::vector<Score>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  return order;
}

// The same model, with other numbers: channels and the values of heads are made larger or smaller, and what
// reads them undoes it.
model::Weights planted(const model::Weights& input) {
  auto weights = model::converted(input, input.units.front().scalar_type());
  const auto plant = [&](const std::string& rows, const std::string& columns, std::int64_t begin,
                         std::int64_t row_count, std::int64_t column_begin, std::int64_t column_count,
                         double factor) {
    weights.tensor(rows).narrow(0, begin, row_count).mul_(factor);
    weights.tensor(columns).narrow(1, column_begin, column_count).div_(factor);
  };
  for (std::int64_t block = 0; block < 3; ++block) {
    for (const auto& [channel, factor] : {std::pair{1 + block, 1000.0}, {6, 1.0 / 256}, {9, 7.0}, {14, 0.01}})
      plant(name_of(block, "mlp.up_proj"), name_of(block, "mlp.down_proj"), channel, 1, channel, 1, factor);
    const auto group = block % 2;  // head_dim 4, two query heads for each
    plant(name_of(block, "self_attn.v_proj"), name_of(block, "self_attn.o_proj"), group * 4, 4, group * 8, 8,
          300.0);
  }
  return weights;
}

double mean_loss(const model::Weights& weights, const std::vector<calibrate::Batch>& batches) {
  double sum = 0, count = 0;
  for (const auto& batch : batches) {
    const auto logs = test::plain_logits(weights, batch).log_softmax(1);
    const auto counted = batch.targets_N.ge(0);
    const auto picked = logs.gather(1, batch.targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
    sum -= (picked * counted).sum().item<double>();
    count += counted.sum().item<double>();
  }
  return sum / count;
}

// d mean_loss / d factor of some columns of a weight, at factor 1.
double slope(const model::Weights& input, const std::string& name, std::int64_t begin, std::int64_t count) {
  const auto batches = batches_of(input);
  const auto at_factor = [&](double factor) {
    auto weights = model::converted(input, at::kDouble);
    weights.tensor(name).narrow(1, begin, count).mul_(factor);
    return mean_loss(weights, batches);
  };
  return (at_factor(1 + 1e-5) - at_factor(1 - 1e-5)) / 2e-5;
}

TEST(Ranking, TaylorIsTheSlopeOfTheLoss) {
  const auto model = test::tiny_model(test::tiny_config());
  const auto scores = scores_of(model, ChannelRanking::taylor);
  std::int64_t compared = 0;
  for (std::int64_t block = 0; block < 3; ++block) {
    const auto& found = scores[static_cast<std::size_t>(block)];
    for (std::int64_t channel = 0; channel < 16; channel += 3) {
      const auto score = found.channels[static_cast<std::size_t>(channel)];
      if (!std::isfinite(score)) continue;
      EXPECT_NEAR(score, std::abs(slope(model, name_of(block, "mlp.down_proj"), channel, 1)), 1e-8);
      ++compared;
    }
    for (std::int64_t group = 0; group < 2; ++group)
      EXPECT_NEAR(found.groups[static_cast<std::size_t>(group)],
                  std::abs(slope(model, name_of(block, "self_attn.o_proj"), group * 8, 8)), 1e-8);
  }
  EXPECT_GE(compared, 15);
}

TEST(Ranking, PlantedScalesChangeNoDecision) {
  const auto plain = test::tiny_model(test::tiny_config());
  const auto other = planted(plain);
  EXPECT_NEAR(mean_loss(plain, batches_of(plain)), mean_loss(other, batches_of(other)), 1e-9);
  for (const auto ranking : kInvariant) {
    const auto expected = scores_of(plain, ranking), found = scores_of(other, ranking);
    for (std::size_t block = 0; block < 3; ++block) {
      EXPECT_EQ(order_of(expected[block].channels), order_of(found[block].channels))
          << static_cast<int>(ranking);
      EXPECT_EQ(order_of(expected[block].groups), order_of(found[block].groups));
      for (std::size_t group = 0; group < 2; ++group)
        EXPECT_NEAR(found[block].groups[group] / expected[block].groups[group], 1, 1e-6);
    }
    auto options = test::stepwise_options();
    options.target.parameters_fraction = 0.8;
    options.width_multiple = 2;
    options.channel_ranking = ranking;
    options.compensate = options.blocks = false;
    record::Observer observer;
    const auto domains = test::random_domains(40);
    EXPECT_EQ(prune::prune_searched({plain, domains, options, observer}).report.kept,
              prune::prune_searched({other, domains, options, observer}).report.kept);
  }
  // Those that do not claim it are told apart by the same model.
  EXPECT_NE(order_of(scores_of(plain, ChannelRanking::activation)[0].channels),
            order_of(scores_of(other, ChannelRanking::activation)[0].channels));
}

TEST(Ranking, KvGroupsHaveOneOfTheirOwn) {
  const auto model = test::tiny_model(test::tiny_config());
  prune::PruneOptions options;
  options.channel_ranking = ChannelRanking::fluctuation;
  options.head_ranking = ChannelRanking::taylor;
  const auto found = calibrate::measured_scores(model, batches_of(model), prune::ranking_options(options));
  const auto channels = scores_of(model, ChannelRanking::fluctuation),
             groups = scores_of(model, ChannelRanking::taylor);
  for (std::size_t block = 0; block < 3; ++block) {
    EXPECT_EQ(found[block].channels, channels[block].channels);
    EXPECT_EQ(found[block].groups, groups[block].groups);
  }
  options.heads = false;
  EXPECT_FALSE(prune::ranking_options(options).uses(ChannelRanking::taylor)) << "none of them can go";
}

TEST(Ranking, InactiveChannelsGoFirstAndMassiveOnesLast) {
  auto model = test::tiny_model(test::tiny_config());
  for (const std::int64_t channel : {2, 5, 11})
    model.tensor(name_of(1, "mlp.up_proj")).select(0, channel).mul_(1e-12);
  model.tensor(name_of(0, "mlp.up_proj")).select(0, 7).mul_(1e3);
  for (const auto ranking : kRankings) {
    const auto scores = scores_of(model, ranking);
    EXPECT_EQ(scores[1].inactive_channels, 3);
    EXPECT_EQ(scores[0].inactive_channels, 0);
    EXPECT_EQ(scores[0].massive_channels, 1);
    EXPECT_EQ(scores[0].channels[7], kInfinity);
    for (const std::size_t channel : {2U, 5U, 11U}) EXPECT_EQ(scores[1].channels[channel], -kInfinity);
    const auto narrow =
        architecture::highest(architecture::counted(16), 13, calibrate::unit_scores(scores).channels[1]);
    EXPECT_EQ(narrow, (std::vector<std::int64_t>{0, 1, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15}));
  }
}

TEST(Ranking, DecisionsCountTheInactiveChannelsThatAreLeft) {
  auto model = test::tiny_model(test::tiny_config());
  for (const std::int64_t channel : {2, 5, 11})
    model.tensor(name_of(1, "mlp.up_proj")).select(0, channel).zero_();
  auto options = test::stepwise_options();
  options.target.parameters_fraction = 0.85;
  options.width_multiple = 2;
  options.compensate = options.blocks = false;
  record::Observer observer;
  const auto report = prune::prune_searched({model, test::random_domains(40), options, observer}).report;
  const auto& decisions = std::get<std::vector<prune::Decision>>(report.course);
  ASSERT_GE(decisions.size(), 3U);
  EXPECT_EQ(decisions[0].inactive_channels, 3);
  EXPECT_EQ(decisions[1].inactive_channels, 1);
  EXPECT_EQ(decisions[2].inactive_channels, 0);
}

TEST(Ranking, ScoresOfASlicedModelFindTheirPlaces) {
  const auto model = test::tiny_model(test::tiny_config());
  const architecture::Kept candidate{{{0, {0, 1}, {1, 4, 6}}, {2, {1}, {0, 2, 15}}},
                                     {1, 2, 3, 4, 5, 6, 8, 9}};
  const auto small = compress::sliced(model, candidate);
  const auto batches = calibrate::calibration_batches(test::random_domains(40), small.config, at::kCPU);
  for (const auto ranking : kRankings) {
    const auto scores = calibrate::unit_scores(
        calibrate::measured_scores(small, batches, {.ranking = ranking, .hidden = true}));
    const auto placed = prune::in_input(scores, model.config, candidate);
    ASSERT_EQ(placed.channels.size(), 3U);
    EXPECT_TRUE(placed.channels[1].empty());
    EXPECT_EQ(placed.channels[2][15], scores.channels[1][2]);
    EXPECT_EQ(placed.channels[2][1], -kInfinity);
    EXPECT_EQ(placed.channels[0][4], scores.channels[0][1]);
    EXPECT_EQ(placed.groups[0], scores.groups[0]);
    EXPECT_EQ(placed.groups[2], (std::vector<double>{-kInfinity, scores.groups[1][0]}));
    ASSERT_EQ(placed.hidden.size(), 16U);
    EXPECT_EQ(placed.hidden[0], -kInfinity);
    EXPECT_EQ(placed.hidden[9], scores.hidden[7]);
  }
}

TEST(Ranking, ActivationsThatAreNotFiniteNameTheBlock) {
  auto model = test::tiny_model(test::tiny_config());
  model.tensor(name_of(2, "mlp.up_proj")).select(0, 3).fill_(std::nan(""));
  const auto message =
      test::message_of<base::ValidationError>([&] { scores_of(model, ChannelRanking::obs); });
  EXPECT_NE(message.find("block 2, input of down_proj"), std::string::npos) << message;
}

}  // namespace
}  // namespace retort
