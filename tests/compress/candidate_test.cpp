#include "retort/compress/candidate.h"

#include <gtest/gtest.h>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "support/models_for_tests.h"

namespace retort {
namespace {

using compress::Candidate;

TEST(Candidate, CountsTheParametersOfTheModelItDescribes) {
  const auto config = test::tiny_config();
  const auto candidate = compress::without_block(compress::whole(config), 1);
  auto smaller = config;
  smaller.blocks.pop_back();
  EXPECT_EQ(compress::parameters_of(config, candidate), architecture::num_parameters(smaller));
  EXPECT_EQ(compress::parameters_of(config, compress::whole(config)), architecture::num_parameters(config));
}

TEST(Candidate, NarrowingKeepsTheHighestScoresAndTheirOrder) {
  const Candidate candidate{{0, 2}, {{0, 1, 2, 3}, {1, 2, 3, 5}}};
  const auto narrow = compress::narrowed(candidate, 2, {{1, 4, 2, 3}, {}, {9, 1, 2, 2, 9, 2}});
  EXPECT_EQ(narrow.channels, (std::vector<std::vector<std::int64_t>>{{1, 3}, {2, 3}}));
  EXPECT_EQ(narrow.blocks, candidate.blocks);
}

TEST(Candidate, HalvesOfBlocksGoOnTheirOwn) {
  const auto config = test::tiny_config();
  const auto all = compress::whole(config);
  const auto deaf = compress::with_groups(config, all, 1, {});
  EXPECT_TRUE(deaf.attends(0));
  EXPECT_FALSE(deaf.attends(1));
  EXPECT_FALSE(compress::config_of(config, deaf).blocks[1].attention);
  EXPECT_EQ(compress::parameters_of(config, all) - compress::parameters_of(config, deaf),
            architecture::num_parameters(config.blocks[1], config.hidden_size) -
                architecture::num_parameters(
                    architecture::Block{.attention = {}, .mlp = config.blocks[1].mlp}, config.hidden_size));
  const auto thin = compress::with_channels(config, deaf, 0, {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(compress::config_of(config, thin).blocks[0].mlp));
  // A block without both is gone.
  EXPECT_EQ(compress::with_channels(config, deaf, 1, {}), compress::without_block(all, 1));
  EXPECT_EQ(compress::with_groups(config, thin, 0, {}), compress::without_block(deaf, 0));
  EXPECT_NE(compress::stable_hash(deaf), compress::stable_hash(all));
}

TEST(Candidate, AKvGroupTakesItsQueryHeadsWithIt) {
  const auto config = test::tiny_config();
  const auto narrow = compress::with_groups(config, compress::whole(config), 1, {1});
  EXPECT_TRUE(narrow.attends(1));
  EXPECT_EQ(compress::kept_groups(config, narrow, 1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(compress::kept_groups(config, narrow, 0), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(compress::config_of(config, narrow).blocks[1].attention, (architecture::Attention{2, 1, 4}));
  EXPECT_EQ(compress::config_of(config, narrow).blocks[0].attention, config.blocks[0].attention);
  // Two query heads, a key and a value head of 4 features each, in and out.
  EXPECT_EQ(
      compress::parameters_of(config, compress::whole(config)) - compress::parameters_of(config, narrow),
      16 * 4 * (2 + 1 + 1 + 2));
  EXPECT_EQ(compress::with_groups(config, narrow, 1, {0, 1}), compress::whole(config));
  EXPECT_NE(compress::stable_hash(narrow), compress::stable_hash(compress::whole(config)));
  EXPECT_NE(compress::stable_hash(narrow),
            compress::stable_hash(compress::with_groups(config, compress::whole(config), 1, {0})));
}

TEST(Candidate, FewerHiddenFeaturesMakeEpsLarger) {
  const auto config = test::tiny_config();
  auto candidate = compress::whole(config);
  candidate.hidden = {0, 2, 3, 7, 8, 9, 10, 15};
  const auto smaller = compress::config_of(config, candidate);
  EXPECT_EQ(smaller.hidden_size, 8);
  EXPECT_DOUBLE_EQ(smaller.rms_norm_eps, 2 * config.rms_norm_eps);
  EXPECT_EQ(smaller.blocks, config.blocks);
}

TEST(Candidate, HashTellsCandidatesApartAndNeverChanges) {
  const Candidate a{{0, 1}, {{0, 1}, {2}}}, b{{0, 1}, {{0}, {1, 2}}};
  EXPECT_NE(compress::stable_hash(a), compress::stable_hash(b));
  EXPECT_EQ(compress::stable_hash(a), compress::stable_hash(Candidate{{0, 1}, {{0, 1}, {2}}}));
  EXPECT_EQ(compress::stable_hash(a), "bbde20a0d27c4d1a533c6907be8aca39");
}

}  // namespace
}  // namespace retort
