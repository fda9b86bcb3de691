#include "retort/prune/target.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/prune/model_space.h"
#include "retort/prune/plan.h"
#include "retort/search/additive.h"
#include "retort/search/neighbourhood.h"
#include "support/message_of.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/stepwise_options.h"

namespace retort {
namespace {

using prune::Move;
using prune::PruneOptions;

// A search over blocks that stay alike: the whole model's steps of one level.
std::vector<Move> first_moves(const prune::ModelSpace& model) {
  std::vector<Move> moves;
  const auto whole = model.space().whole();
  for (std::size_t unit = 0; unit < whole.size(); ++unit) {
    auto next = whole;
    ++next[unit];
    moves.push_back(model.move(whole, next));
  }
  return moves;
}

TEST(Space, OfBlocksThatStayAlikeHasEveryBlockAndTheNextMultiples) {
  const auto config = test::tiny_config(3, 15);
  auto options = test::stepwise_options();
  options.width_multiple = 4;
  options.heads = false;
  const auto target = architecture::num_parameters(config) - 1;
  const auto moves = first_moves({config, options, target, {}});
  ASSERT_EQ(moves.size(), 4u);
  EXPECT_EQ(moves[2].block, 2);
  EXPECT_EQ(moves[3].width, 12);
  options.blocks = false;
  options.heads = options.hidden = true;
  const auto parts = first_moves({config, options, target, {}});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].part, architecture::PartKind::kv_groups);
  EXPECT_EQ(parts[0].width, 1);
  EXPECT_EQ(parts[2].part, architecture::PartKind::hidden);
  EXPECT_EQ(parts[2].width, 12);
}

// What is gone stays gone, and of the rest other parts may go first.
TEST(Space, IsRankedAgainFromAState) {
  const auto config = test::tiny_config(2);
  auto options = test::stepwise_options();
  options.hidden = true;
  options.blocks = options.channels = false;
  options.width_multiple = 4;
  const calibrate::UnitScores first{
      .channels = {}, .groups = {{1, 2}, {2, 1}}, .hidden = {9, 1, 8, 2, 7, 3, 6, 4, 5, 0, 0, 0, 0, 0, 0, 0}};
  prune::ModelSpace model(config, options, architecture::num_parameters(config) - 1, first);
  const auto narrow = model.candidate({1, 1});
  EXPECT_EQ(narrow.find(0)->kv_groups, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(narrow.find(1)->kv_groups, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(model.candidate({1, 3}).hidden, (std::vector<std::int64_t>{0, 2, 4, 6}));
  auto again = first;
  std::ranges::reverse(again.hidden);
  again.groups = {{2, 1}, {1, 2}};
  model.rank_again({1, 1}, again);
  EXPECT_EQ(model.candidate({1, 1}), narrow);
  const auto narrower = model.candidate({1, 3});
  EXPECT_EQ(narrower.find(0)->kv_groups, (std::vector<std::int64_t>{1}));
  for (const auto feature : narrower.hidden)
    EXPECT_TRUE(std::ranges::count(narrow.hidden, feature)) << feature;
  EXPECT_NE(narrower.hidden, (std::vector<std::int64_t>{0, 2, 4, 6}));
}

TEST(Target, IsAFractionRoundedDownOrANumber) {
  const auto config = test::tiny_config();
  const auto before = architecture::num_parameters(config);
  auto options = test::stepwise_options();
  options.width_multiple = 4;
  options.target = {.parameters_fraction = 0.7, .parameters = 0};
  EXPECT_EQ(prune::target_parameters(config, options),
            static_cast<std::int64_t>(0.7 * static_cast<double>(before)));
  options.target = {.parameters_fraction = 0, .parameters = before - 1};
  EXPECT_EQ(prune::target_parameters(config, options), before - 1);
}

TEST(Target, MayBeANumberOfBlocks) {
  auto config = test::tiny_config(4);
  const auto all = architecture::num_parameters(config);
  const auto block =
      all - architecture::parameters_of(config, architecture::without_block(architecture::whole(config), 0));
  prune::PruneOptions options;
  options.units = prune::Units::blocks;
  options.target = {.blocks = 3};
  EXPECT_EQ(prune::target_parameters(config, options), all - block);
  const auto refusal = [&] {
    return test::message_of<base::UsageError>([&] { prune::target_parameters(config, options); });
  };
  options.target.blocks = 4;
  EXPECT_SAYS(refusal(), "target.blocks: expected 1 to 3 of this model's 4, found 4");
  options.target = {.blocks = 3};
  config.blocks[1].mlp = architecture::DenseMlp{4};
  EXPECT_SAYS(refusal(), "expected blocks of one size");
  options.units = prune::Units::per_layer;
  EXPECT_SAYS(refusal(), "expected units: blocks, found 'per_layer'");
}

prune::Size made_up_times(const architecture::Config& config) {
  const auto& attention = *config.blocks.front().attention;
  const auto groups = attention.num_kv_heads, width = architecture::mlp_width(config.blocks.front());
  const auto name =
      base::join("attention of ", attention.num_heads / groups, " heads of ", attention.head_dim, " a group");
  const base::Json json = {{"batch", 2},
                           {"other_seconds", 0.002},
                           {"seconds", {{"MLP", {{width, 0.001}}}, {name, {{1, 0.0005}, {groups, 0.001}}}}}};
  return {eval::TokenTimes(json), config};
}

TEST(Target, MayBeATime) {
  const auto config = test::tiny_config(4);
  const auto size = made_up_times(config);
  const auto whole = size.of(config);
  EXPECT_NEAR(size.seconds(whole), 0.010, 1e-6);
  prune::PruneOptions options;
  options.target = {.time = {.latency = 0.8}};
  EXPECT_NEAR(size.seconds(prune::target_of(config, options, size)), 0.008, 1e-7);
  options.target = {.time = {.milliseconds = 7}};
  EXPECT_NEAR(size.seconds(prune::target_of(config, options, size)), 0.007, 1e-7);
  options.target = {.time = {.tokens_per_second = 400, .batch = 2}};
  const auto target = prune::target_of(config, options, size);
  EXPECT_NEAR(size.seconds(target), 0.005, 1e-7);
  EXPECT_LT(prune::target_parameters(config, options), architecture::num_parameters(config));
  const prune::ModelSpace model(config, options, target, {}, size);
  const auto& space = model.space();
  EXPECT_FALSE(space.removed_together);  // so that the additive search takes them
  auto state = space.whole();
  for (std::size_t unit = 0; unit < state.size(); ++unit) {
    state[unit] = space.highest(unit) / 2;
    EXPECT_EQ(whole - size.of(architecture::config_of(config, model.candidate(state))), space.removed(state));
  }
  const auto refusal = [&] {
    return test::message_of<base::UsageError>(
        [&] { prune::ModelSpace(config, options, prune::target_of(config, options, size), {}, size); });
  };
  options.target = {.time = {.milliseconds = 10.5}};
  EXPECT_SAYS(refusal(), "expected less than the 10.000 ms a token of the whole model, found 10.5 ms");
  options.target = {.time = {.milliseconds = 1}};
  EXPECT_SAYS(refusal(), "expected at least 2.000 ms a token");
  options.target = {.time = {.latency = 0.5}};
  options.hidden = true;
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { prune::target_parameters(config, options); }),
              "set hidden: false");
}

TEST(Target, OfATimeTakesTheNearestNumberOfBlocks) {
  const auto config = test::tiny_config(4);
  const auto size = made_up_times(config);
  prune::PruneOptions options;
  options.units = prune::Units::blocks;
  options.target = {.time = {.latency = 0.77}};
  const prune::ModelSpace model(config, options, prune::target_of(config, options, size), {}, size);
  ASSERT_TRUE(model.nearest_size());
  EXPECT_NEAR(size.seconds(*model.nearest_size()), 0.008, 1e-6);
}

TEST(Target, OutOfReachIsRefusedWithTheRange) {
  const auto config = test::tiny_config();
  auto options = test::stepwise_options();
  options.width_multiple = 4;
  auto smallest = config;
  smallest.blocks = {{.attention = architecture::Attention{2, 1, 4}, .mlp = architecture::DenseMlp{4}}};
  const auto least = architecture::num_parameters(smallest), before = architecture::num_parameters(config);
  for (const auto parameters : {least - 1, before, before + 1}) {
    options.target = {.parameters_fraction = 0, .parameters = parameters};
    const auto message =
        test::message_of<base::UsageError>([&] { prune::target_parameters(config, options); });
    EXPECT_NE(message.find(std::to_string(least)), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(before - 1)), std::string::npos) << message;
  }
  options.target = {.parameters_fraction = 0, .parameters = least};
  EXPECT_EQ(prune::target_parameters(config, options), least);
}

// What a wide model would take in hundreds of steps is coarser; a small one keeps the finest.
TEST(Target, IsReachedByAMultipleThatFollowsFromTheModel) {
  auto config = test::tiny_config();
  const auto multiple_of = [&](std::int64_t width) {
    for (auto& block : config.blocks) block.mlp = architecture::DenseMlp{width};
    config.blocks.front().mlp = architecture::DenseMlp{32};
    return prune::usual_width_multiple(config);
  };
  EXPECT_EQ(multiple_of(512), 32);
  EXPECT_EQ(multiple_of(2048), 32);
  EXPECT_EQ(multiple_of(2049), 64);
  EXPECT_EQ(multiple_of(8192), 128);
  EXPECT_EQ(multiple_of(14336), 224);
}

// A dry run says what the text costs before it is read.
TEST(Work, CountsTextAndSearch) {
  const auto config = test::tiny_config();
  prune::PruneOptions options;
  options.target.parameters_fraction = 0.8;
  options.search.tolerance = 0.1;
  options.search.budget_tokens = 5000;
  const auto work = prune::work_of(config, 1000, options);
  EXPECT_EQ(work.text_tokens, 1000);
  EXPECT_EQ(work.search.most, 5000);
  EXPECT_GT(work.search.least, 250) << "one model on a quarter of the text";
  EXPECT_EQ(work.other_tokens, 5 * 1000);
  const auto flops = architecture::flops_per_token(config, options.sequence_length);
  EXPECT_DOUBLE_EQ(work.most_flops, 10'000 * flops);
  EXPECT_DOUBLE_EQ(work.least_flops, static_cast<double>(5000 + work.search.least) * flops);
  EXPECT_SAYS(prune::describe(work), "1.0 k tokens of calibration text");
  EXPECT_SAYS(prune::describe(work), "the search passes up to 5.0 k tokens and needs up to ");
  EXPECT_SAYS(prune::describe(prune::work_of(config, 1000, options, {{.most = 10, .least = 20}})),
              "up to 10 tokens, maybe too few: it needs up to 20 tokens, which the documents decide");
  EXPECT_SAYS(
      prune::describe(prune::work_of(config, 1000, options, {{.most = 30, .least = 20, .exact = true}})),
      "up to 30 tokens and needs 20 tokens");
  EXPECT_GT(prune::work_of(config, 1, options).search.least, 0);
  options.search.budget_tokens = -1;
  EXPECT_EQ(prune::work_of(config, 1000, options).search.most, 400'000);
  EXPECT_GT(prune::work_of(config, 1'000'000, options).search.most, 3 * 250'000);

  options.units = prune::Units::blocks;  // nothing is ranked or fitted
  options.target.parameters_fraction = 0.71;
  EXPECT_EQ(prune::work_of(config, 1000, options).other_tokens, 1000);
  options.search.tolerance = 0;
  options.target.parameters_fraction = 0.799;
  EXPECT_SAYS(prune::describe(prune::work_of(config, 1000, options)), "the nearest size is taken");

  auto stepwise = test::stepwise_options();
  stepwise.target.parameters_fraction = 0.71;
  const auto steps = prune::work_of(config, 1000, stepwise);
  EXPECT_SAYS(prune::describe(steps), "for every candidate");
  EXPECT_GT(steps.least_flops, 1000 * flops) << "a step at least, beside losses and rankings";
  EXPECT_GT(steps.most_flops, steps.least_flops);
}

// The shape of Qwen2.5-0.5B: with biases, removals have next to no divisor in common.
TEST(Space, OfAModelWithBiasesHasAnAdditiveChoice) {
  auto config = test::tiny_config(24, 4864, /*tied=*/true);
  config.vocab_size = 151'936;
  config.hidden_size = 896;
  for (auto& block : config.blocks) {
    block.attention = architecture::Attention{14, 2, 64};
    block.attention->kind.query_key_value_bias = true;
  }
  prune::PruneOptions options;
  options.target.parameters_fraction = 0.6;
  options.width_multiple = prune::usual_width_multiple(config);
  const prune::ModelSpace model(config, options, prune::target_parameters(config, options), {});
  const auto& space = model.space();
  ASSERT_GT(space.most_removed / search::common_divisor(space), 1 << 20);
  search::Proxy proxy(space);  // later blocks are dearer, and much of a unit more than a little
  for (std::size_t unit = 0; unit < space.units.size(); ++unit)
    for (std::int32_t level = 1; level <= space.highest(unit); ++level) {
      const double share = static_cast<double>(level) / space.highest(unit);
      proxy.set(unit, level, (1 + static_cast<double>(unit)) * share * share);
    }
  const auto state = search::least_additive(space, proxy);
  EXPECT_TRUE(space.feasible(state));
  const auto sum = [&](const search::State& of) { return proxy.difference(space.whole(), of); };
  for (const auto& near : search::neighbours(space, state, proxy)) EXPECT_LE(sum(state), sum(near) + 1e-3);
}

TEST(Target, NeedsOneWayAndSomethingToRemove) {
  const auto config = test::tiny_config();
  auto options = test::stepwise_options();
  EXPECT_THROW(prune::target_parameters(config, options), base::UsageError);
  options.target = {.parameters_fraction = 0.9, .parameters = 1000};
  EXPECT_THROW(prune::target_parameters(config, options), base::UsageError);
  options.target = {.parameters_fraction = 0.9, .parameters = 0};
  options.blocks = options.heads = options.channels = false;
  EXPECT_THROW(prune::target_parameters(config, options), base::UsageError);
}

TEST(Target, NarrowingNeedsUniformBlocks) {
  auto config = test::tiny_config();
  config.blocks[1].mlp = architecture::DenseMlp{8};
  auto options = test::stepwise_options();
  options.width_multiple = 4;
  options.target = {.parameters_fraction = 0.9, .parameters = 0};
  EXPECT_THROW(prune::target_parameters(config, options), base::UsageError);
  options.channels = options.heads = false;
  EXPECT_GT(prune::target_parameters(config, options), 0);
}

}  // namespace
}  // namespace retort
