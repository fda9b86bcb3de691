#include "retort/prune/candidate.h"

#include <gtest/gtest.h>

#include "prune/models_for_tests.h"
#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/prune/importance.h"
#include "retort/prune/moves.h"

namespace retort {
namespace {

using prune::Candidate;
using prune::Move;
using prune::PruneOptions;

TEST(Candidate, CountsTheParametersOfTheModelItDescribes) {
  const auto config = test::tiny_config();
  const auto candidate = prune::without_block(prune::whole(config), 1);
  auto smaller = config;
  smaller.blocks.pop_back();
  EXPECT_EQ(prune::parameters_of(config, candidate), architecture::num_parameters(smaller));
  EXPECT_EQ(prune::parameters_of(config, prune::whole(config)), architecture::num_parameters(config));
}

TEST(Candidate, NarrowingKeepsTheHighestScoresAndTheirOrder) {
  const Candidate candidate{{0, 2}, {{0, 1, 2, 3}, {1, 2, 3, 5}}};
  const auto narrow = prune::narrowed(candidate, 2, {{1, 4, 2, 3}, {}, {9, 1, 2, 2, 9, 2}});
  EXPECT_EQ(narrow.channels, (std::vector<std::vector<std::int64_t>>{{1, 3}, {2, 3}}));
  EXPECT_EQ(narrow.blocks, candidate.blocks);
}

TEST(Candidate, HalvesOfBlocksGoOnTheirOwn) {
  const auto config = test::tiny_config();
  const auto all = prune::whole(config);
  const auto deaf = prune::with_groups(config, all, 1, {});
  EXPECT_TRUE(deaf.attends(0));
  EXPECT_FALSE(deaf.attends(1));
  EXPECT_FALSE(prune::config_of(config, deaf).blocks[1].attention);
  EXPECT_EQ(prune::parameters_of(config, all) - prune::parameters_of(config, deaf),
            architecture::num_parameters(config.blocks[1], config.hidden_size) -
                architecture::num_parameters(
                    architecture::Block{.attention = {}, .mlp = config.blocks[1].mlp}, config.hidden_size));
  const auto thin = prune::with_channels(config, deaf, 0, {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(prune::config_of(config, thin).blocks[0].mlp));
  // A block without both is gone.
  EXPECT_EQ(prune::with_channels(config, deaf, 1, {}), prune::without_block(all, 1));
  EXPECT_EQ(prune::with_groups(config, thin, 0, {}), prune::without_block(deaf, 0));
  EXPECT_NE(prune::stable_hash(deaf), prune::stable_hash(all));
}

TEST(Candidate, AKvGroupTakesItsQueryHeadsWithIt) {
  const auto config = test::tiny_config();
  const auto narrow = prune::with_groups(config, prune::whole(config), 1, {1});
  EXPECT_TRUE(narrow.attends(1));
  EXPECT_EQ(prune::kept_groups(config, narrow, 1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(prune::kept_groups(config, narrow, 0), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(prune::config_of(config, narrow).blocks[1].attention, (architecture::Attention{2, 1, 4}));
  EXPECT_EQ(prune::config_of(config, narrow).blocks[0].attention, config.blocks[0].attention);
  // Two query heads, a key and a value head of 4 features each, in and out.
  EXPECT_EQ(prune::parameters_of(config, prune::whole(config)) - prune::parameters_of(config, narrow),
            16 * 4 * (2 + 1 + 1 + 2));
  EXPECT_EQ(prune::with_groups(config, narrow, 1, {0, 1}), prune::whole(config));
  EXPECT_NE(prune::stable_hash(narrow), prune::stable_hash(prune::whole(config)));
  EXPECT_NE(prune::stable_hash(narrow),
            prune::stable_hash(prune::with_groups(config, prune::whole(config), 1, {0})));
}

TEST(Candidate, FewerHiddenFeaturesMakeEpsLarger) {
  const auto config = test::tiny_config();
  auto candidate = prune::whole(config);
  candidate.hidden = {0, 2, 3, 7, 8, 9, 10, 15};
  const auto smaller = prune::config_of(config, candidate);
  EXPECT_EQ(smaller.hidden_size, 8);
  EXPECT_DOUBLE_EQ(smaller.rms_norm_eps, 2 * config.rms_norm_eps);
  EXPECT_EQ(smaller.blocks, config.blocks);
}

TEST(Candidate, HashTellsCandidatesApartAndNeverChanges) {
  const Candidate a{{0, 1}, {{0, 1}, {2}}}, b{{0, 1}, {{0}, {1, 2}}};
  EXPECT_NE(prune::stable_hash(a), prune::stable_hash(b));
  EXPECT_EQ(prune::stable_hash(a), prune::stable_hash(Candidate{{0, 1}, {{0, 1}, {2}}}));
  EXPECT_EQ(prune::stable_hash(a), "bbde20a0d27c4d1a533c6907be8aca39");
}

TEST(Moves, AreEveryBlockAndTheNextMultipleBelow) {
  const auto config = test::tiny_config(3, 15);
  PruneOptions options;
  options.width_multiple = 4;
  options.heads = false;
  auto moves = prune::moves_from(config, prune::whole(config), options);
  ASSERT_EQ(moves.size(), 4u);
  EXPECT_EQ(moves[2].block, 2);
  EXPECT_EQ(moves[3].width, 12);
  options.blocks = false;
  EXPECT_EQ(prune::moves_from(config, prune::whole(config), options).size(), 1u);
  options.heads = options.hidden = true;
  moves = prune::moves_from(config, prune::whole(config), options);
  ASSERT_EQ(moves.size(), 3u);
  EXPECT_EQ(moves[0].action, Move::Action::narrow_attention);
  EXPECT_EQ(moves[0].width, 1);
  EXPECT_EQ(moves[2].action, Move::Action::narrow_hidden);
  EXPECT_EQ(moves[2].width, 12);
}

TEST(Moves, NarrowEveryBlockToWhatScoresHighest) {
  const auto config = test::tiny_config(2);
  const prune::UnitScores scores{
      .channels = {}, .groups = {{1, 2}, {2, 1}}, .hidden = {9, 1, 8, 2, 7, 3, 6, 4, 5, 0, 0, 0, 0, 0, 0, 0}};
  auto candidate = prune::moved(config, prune::whole(config),
                                {.action = Move::Action::narrow_attention, .block = -1, .width = 1}, scores);
  EXPECT_EQ(prune::kept_groups(config, candidate, 0), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(prune::kept_groups(config, candidate, 1), (std::vector<std::int64_t>{0}));
  for (const std::int64_t width : {12, 4})
    candidate = prune::moved(config, candidate,
                             {.action = Move::Action::narrow_hidden, .block = -1, .width = width}, scores);
  EXPECT_EQ(candidate.hidden, (std::vector<std::int64_t>{0, 2, 4, 6}));
}

TEST(Moves, LeaveABlockAndAMultipleOfChannels) {
  PruneOptions options;
  options.width_multiple = 4;
  const auto config = test::tiny_config();
  const auto last = prune::with_groups(config, Candidate{{2}, {{1, 3, 5, 7}}}, 2, {0});
  EXPECT_TRUE(prune::moves_from(config, last, options).empty());
}

TEST(Moves, NarrowingToATargetIsTheWidestThatReachesIt) {
  const auto config = test::tiny_config(2, 16);
  const auto candidate = prune::whole(config);
  PruneOptions options;
  options.width_multiple = 4;
  const auto before = architecture::num_parameters(config);
  const std::int64_t step = 2 * 4 * 3 * 16;  // blocks x channels x matrices x hidden
  EXPECT_EQ(prune::narrowing_to(config, candidate, options, before - step).width, 12);
  EXPECT_EQ(prune::narrowing_to(config, candidate, options, before - step - 1).width, 8);
  EXPECT_EQ(prune::narrowing_to(config, candidate, options, before - 3 * step - 1).width, -1);
}

TEST(Target, IsAFractionRoundedDownOrANumber) {
  const auto config = test::tiny_config();
  const auto before = architecture::num_parameters(config);
  PruneOptions options;
  options.width_multiple = 4;
  options.target = {.parameters_fraction = 0.7, .parameters = 0};
  EXPECT_EQ(prune::target_parameters(config, options),
            static_cast<std::int64_t>(0.7 * static_cast<double>(before)));
  options.target = {.parameters_fraction = 0, .parameters = before - 1};
  EXPECT_EQ(prune::target_parameters(config, options), before - 1);
}

TEST(Target, OutOfReachIsRefusedWithTheRange) {
  const auto config = test::tiny_config();
  PruneOptions options;
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

TEST(Target, NeedsOneWayAndSomethingToRemove) {
  const auto config = test::tiny_config();
  PruneOptions options;
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
  PruneOptions options;
  options.width_multiple = 4;
  options.target = {.parameters_fraction = 0.9, .parameters = 0};
  EXPECT_THROW(prune::target_parameters(config, options), base::UsageError);
  options.channels = options.heads = false;
  EXPECT_GT(prune::target_parameters(config, options), 0);
}

TEST(Importance, WandaWeighsTheColumnWithTheNormOfItsInput) {
  prune::ChannelStatistics statistics;
  statistics.add(at::tensor({3., 0., 1., 4., 0., 1.}).view({2, 3}), "block 0");
  const auto down = at::tensor({1., 5., -2., -1., 5., 0.}).view({2, 3});
  const auto score = prune::channel_scores(prune::wanda_score, statistics, down);
  EXPECT_NEAR(score[0], 2 * 5, 1e-6);
  EXPECT_NEAR(score[1], 0, 1e-12);
  EXPECT_NEAR(score[2], 2 * std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(prune::channel_scores(prune::activation_score, statistics, down)[0], 3.5, 1e-6);
  // Planted outliers: a channel times s whose column is divided by s is the same channel.
  for (const auto ranking : {prune::ChannelRanking::wanda, prune::ChannelRanking::fluctuation}) {
    base::Random random(3, 3);
    auto values = at::empty({50, 6}, at::kDouble);
    for (std::int64_t k = 0; k < values.numel(); ++k)
      values.mutable_data_ptr<double>()[k] = random.next_normal() + 0.3 * static_cast<double>(k % 6);
    const auto columns = values.narrow(0, 0, 4).contiguous();
    const auto factors = at::tensor({1.0, 1000.0, 1.0, 0.01, 1.0, 7.0}, at::kDouble);
    prune::ChannelStatistics plain, planted;
    plain.add(values, "block");
    planted.add(values * factors, "block");
    const auto before = prune::channel_scores(prune::score_of(ranking), plain, columns);
    const auto after = prune::channel_scores(prune::score_of(ranking), planted, columns / factors);
    for (std::size_t c = 0; c < 6; ++c) EXPECT_NEAR(after[c] / before[c], 1, 1e-5);
  }
}

TEST(Importance, HeadsAndHiddenFeaturesScoreAsTheColumnsThatReadThem) {
  const auto config = test::tiny_config(1);
  const auto weights = test::tiny_model(config);
  const auto x = at::randn({20, 16}, at::kDouble);
  prune::BlockStatistics statistics;
  for (const auto tap : prune::kTaps) statistics[tap].add(x, "block 0");
  const prune::RankingOptions options{.winsorise_quantile = 1, .hidden = true};
  const auto scores =
      prune::unit_scores({prune::block_scores(options, prune::weights_of_block(weights, 0), statistics)});
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
  prune::ChannelStatistics all, first, second;
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
  prune::ChannelStatistics statistics;
  statistics.add(at::tensor({1.0, 5.0, 3.0, 5.0, 8.0, 5.0}, at::kDouble).view({3, 2}), "block");
  const auto down = at::tensor({3.0, 1.0, 4.0, 1.0}, at::kDouble).view({2, 2});
  const auto score = prune::channel_scores(prune::fluctuation_score, statistics, down);
  EXPECT_NEAR(score[0], (1.0 + 9 + 64) / 3 * 25 - 16.0 * 25, 1e-6);
  EXPECT_NEAR(score[1], 0, 1e-6) << "a constant channel can be replaced by a constant";
}

}  // namespace
}  // namespace retort
