#include "retort/compress/column_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "retort/base/random.h"
#include "retort/compress/assignment.h"
#include "retort/compress/reorder.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"

namespace retort {
namespace {

using compress::column_order;
using compress::kept_share;

at::Tensor random_scores(std::int64_t rows, std::int64_t columns, std::uint64_t stream) {
  base::Random random(5, stream);
  auto scores = at::empty({rows, columns}, at::kDouble);
  for (std::int64_t i = 0; i < scores.numel(); ++i)
    scores.mutable_data_ptr<double>()[i] = std::exp(1.5 * random.next_normal());
  return scores;
}

at::Tensor in_order(const at::Tensor& score_RC, const std::vector<std::int64_t>& order) {
  return score_RC.index_select(1, at::tensor(order, at::kLong));
}

bool is_order(std::vector<std::int64_t> order, std::int64_t count) {
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> expected(static_cast<std::size_t>(count));
  std::iota(expected.begin(), expected.end(), 0);
  return order == expected;
}

TEST(Assignment, IsTheBestOfAllOrders) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::int64_t count = 1 + static_cast<std::int64_t>(seed % 6);
    base::Random random(7, seed);
    std::vector<float> cost(static_cast<std::size_t>(count * count));
    for (auto& value : cost) value = static_cast<float>(random.next_normal());
    const auto total = [&](const std::vector<std::int64_t>& columns) {
      double sum = 0;
      for (std::int64_t row = 0; row < count; ++row)
        sum += static_cast<double>(
            cost[static_cast<std::size_t>(row * count + columns[static_cast<std::size_t>(row)])]);
      return sum;
    };
    std::vector<std::int64_t> columns(static_cast<std::size_t>(count));
    std::iota(columns.begin(), columns.end(), 0);
    double least = total(columns);
    while (std::next_permutation(columns.begin(), columns.end())) least = std::min(least, total(columns));
    const auto found = compress::least_cost_assignment(cost, count);
    ASSERT_TRUE(is_order(found, count));
    EXPECT_NEAR(total(found), least, 1e-5) << "seed " << seed;
  }
}

TEST(ColumnOrder, KeptShareIsThatOfTheHighestOfEachGroup) {
  const auto score = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 1.0, 5.0}).view({1, 8});
  EXPECT_DOUBLE_EQ(kept_share(score, {2, 4}), 17.0 / 22);
  EXPECT_DOUBLE_EQ(kept_share(score, {1, 4}), 9.0 / 22);
  EXPECT_DOUBLE_EQ(kept_share(at::zeros({1, 8}), {2, 4}), 1);
}

TEST(ColumnOrder, SpreadsWhatAllRowsWant) {
  auto score = at::full({3, 16}, 0.01, at::kDouble);
  score.narrow(1, 4, 8).fill_(1);  // two groups are wanted whole, two not at all
  EXPECT_NEAR(kept_share(score, {2, 4}), 4.04 / 8.08, 1e-9);
  EXPECT_NEAR(kept_share(in_order(score, column_order(score, {2, 4})), {2, 4}), 8 / 8.08, 1e-6);
}

// The best division of eight columns in two groups, of all 35.
double best_share(const at::Tensor& score, const model::Pattern& pattern) {
  double best = 0;
  for (unsigned chosen = 0; chosen < 256; ++chosen) {
    std::vector<std::int64_t> first, second;
    for (unsigned column = 0; column < 8; ++column) (chosen >> column & 1 ? first : second).push_back(column);
    if (first.size() != 4) continue;
    first.insert(first.end(), second.begin(), second.end());
    best = std::max(best, kept_share(in_order(score, first), pattern));
  }
  return best;
}

TEST(ColumnOrder, IsNearlyTheBestDivision) {
  for (const model::Pattern pattern : {model::Pattern{2, 4}, model::Pattern{1, 4}}) {
    double natural = 0, found = 0, best = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const auto score = random_scores(4, 8, seed);
      const auto order = column_order(score, pattern);
      ASSERT_TRUE(is_order(order, 8));
      const double share = kept_share(in_order(score, order), pattern), before = kept_share(score, pattern);
      EXPECT_GE(share, before - 1e-6) << "seed " << seed;
      natural += before, found += share, best += best_share(score, pattern);
    }
    EXPECT_GT(found - natural, 0.9 * (best - natural)) << "of what the best division gains";
  }
}

TEST(ColumnOrder, TradesInPartsWhereGroupsAreMany) {
  const auto score = random_scores(8, 4 * 600, 1);
  const auto order = column_order(score, {2, 4});
  EXPECT_TRUE(is_order(order, 4 * 600));
  EXPECT_EQ(order, column_order(score, {2, 4})) << "no chance from outside";
  const double natural = kept_share(score, {2, 4}), found = kept_share(in_order(score, order), {2, 4});
  EXPECT_LT(1 - found, 0.75 * (1 - natural));
}

TEST(Reorder, ChangesNothingOfWhatTheModelComputes) {
  auto config = test::tiny_config();
  config.blocks[1] = {.attention = architecture::Attention{4, 2, 8}, .mlp = architecture::DenseMlp{24}};
  const auto input = test::tiny_model(config);
  auto weights = model::converted(input, at::kDouble);
  for (const auto role : {architecture::Role::output, architecture::Role::down}) {
    const auto& layer = *weights.layout.units[2].find(role);
    const auto score = random_scores(layer.rows(), layer.cols(), 3);
    const auto order = compress::input_order(config, weights.layout, layer, score, {2, 4});
    ASSERT_TRUE(is_order(order, layer.cols()));
    compress::reorder_inputs(weights, layer, order);
    EXPECT_TRUE(at::equal(weights.tensor(layer.name), in_order(input.tensor(layer.name), order)));
    EXPECT_FALSE(at::equal(weights.tensor(layer.name), input.tensor(layer.name)));
    if (role == architecture::Role::down) continue;
    for (std::size_t i = 0; i < order.size(); ++i) {  // within a head, alike in the heads of a KV group
      EXPECT_EQ(order[i] / 8, static_cast<std::int64_t>(i) / 8);
      if (i % 16 >= 8) {
        EXPECT_EQ(order[i], order[i - 8] + 8);
      }
    }
  }
  for (const auto& batch :
       calibrate::calibration_batches(test::random_domains(config.vocab_size, 2, 48), config, at::kCPU))
    EXPECT_LT(test::largest_difference(test::plain_logits(weights, batch), test::plain_logits(input, batch)),
              1e-9);
}

TEST(Reorder, QueriesAndHeadsOfOneGroupStay) {
  const auto input = test::tiny_model(test::tiny_config());
  for (const auto role : {architecture::Role::query, architecture::Role::output, architecture::Role::gate}) {
    const auto& layer = *input.layout.units[1].find(role);
    EXPECT_TRUE(compress::input_order(input.config, input.layout, layer,
                                      random_scores(layer.rows(), layer.cols(), 4), {2, 4})
                    .empty());
  }
}

}  // namespace
}  // namespace retort
