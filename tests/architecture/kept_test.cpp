#include "retort/architecture/kept.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"

namespace retort {
namespace {

using architecture::Kept;

// Three blocks of four query heads, two key and value heads and 16 channels.
architecture::Config tiny_config() {
  architecture::Config config;
  config.vocab_size = 40;
  config.hidden_size = 16;
  config.blocks.assign(3, {.attention = architecture::Attention{4, 2, 4}, .mlp = architecture::DenseMlp{16}});
  return config;
}

TEST(Kept, CountsTheParametersOfTheModelItDescribes) {
  const auto config = tiny_config();
  const auto candidate = architecture::without_block(architecture::whole(config), 1);
  auto smaller = config;
  smaller.blocks.pop_back();
  EXPECT_EQ(architecture::parameters_of(config, candidate), architecture::num_parameters(smaller));
  EXPECT_EQ(architecture::parameters_of(config, architecture::whole(config)),
            architecture::num_parameters(config));
}

TEST(Kept, HighestScoresStayInTheirOrder) {
  EXPECT_EQ(architecture::highest({0, 1, 2, 3}, 2, {1, 4, 2, 3}), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(architecture::highest({1, 2, 3, 5}, 2, {9, 1, 2, 2, 9, 2}), (std::vector<std::int64_t>{2, 3}));
}

TEST(Kept, HalvesOfBlocksGoOnTheirOwn) {
  const auto config = tiny_config();
  const auto all = architecture::whole(config);
  const auto deaf = architecture::with_kv_groups(all, 1, {});
  EXPECT_FALSE(deaf.find(0)->kv_groups.empty());
  EXPECT_TRUE(deaf.find(1)->kv_groups.empty());
  EXPECT_FALSE(architecture::config_of(config, deaf).blocks[1].attention);
  EXPECT_EQ(architecture::parameters_of(config, all) - architecture::parameters_of(config, deaf),
            architecture::num_parameters(config.blocks[1], config.hidden_size) -
                architecture::num_parameters(
                    architecture::Block{.attention = {}, .mlp = config.blocks[1].mlp}, config.hidden_size));
  const auto thin = architecture::with_channels(deaf, 0, {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(architecture::config_of(config, thin).blocks[0].mlp));
  // A block without both is gone.
  EXPECT_EQ(architecture::with_channels(deaf, 1, {}), architecture::without_block(all, 1));
  EXPECT_EQ(architecture::with_kv_groups(thin, 0, {}), architecture::without_block(deaf, 0));
  EXPECT_NE(architecture::stable_hash(deaf), architecture::stable_hash(all));
}

TEST(Kept, AKvGroupTakesItsQueryHeadsWithIt) {
  const auto config = tiny_config();
  const auto narrow = architecture::with_kv_groups(architecture::whole(config), 1, {1});
  EXPECT_EQ(narrow.find(1)->kv_groups, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(narrow.find(0)->kv_groups, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(architecture::config_of(config, narrow).blocks[1].attention, (architecture::Attention{2, 1, 4}));
  EXPECT_EQ(architecture::config_of(config, narrow).blocks[0].attention, config.blocks[0].attention);
  // Two query heads, a key and a value head of 4 features each, in and out.
  EXPECT_EQ(architecture::parameters_of(config, architecture::whole(config)) -
                architecture::parameters_of(config, narrow),
            16 * 4 * (2 + 1 + 1 + 2));
  EXPECT_EQ(architecture::with_kv_groups(narrow, 1, {0, 1}), architecture::whole(config));
  EXPECT_NE(architecture::stable_hash(narrow), architecture::stable_hash(architecture::whole(config)));
  EXPECT_NE(architecture::stable_hash(narrow),
            architecture::stable_hash(architecture::with_kv_groups(architecture::whole(config), 1, {0})));
}

TEST(Kept, FewerHiddenFeaturesMakeEpsLarger) {
  const auto config = tiny_config();
  auto candidate = architecture::whole(config);
  candidate.hidden = {0, 2, 3, 7, 8, 9, 10, 15};
  const auto smaller = architecture::config_of(config, candidate);
  EXPECT_EQ(smaller.hidden_size, 8);
  EXPECT_DOUBLE_EQ(smaller.rms_norm_eps, 2 * config.rms_norm_eps);
  EXPECT_EQ(smaller.blocks, config.blocks);
}

TEST(Kept, PartsOfPartsKeepTheFirstNumbers) {
  const Kept first{{{1, {0, 1}, {2, 5, 7}}, {4, {1}, {}}}, {0, 3, 6}};
  const Kept then{{{0, {1}, {0, 2}}}, {1, 2}};
  EXPECT_EQ(architecture::composed(first, then), (Kept{{{1, {1}, {2, 7}}}, {3, 6}}));
  const auto config = tiny_config();
  EXPECT_EQ(architecture::composed(architecture::whole(config), architecture::whole(config)),
            architecture::whole(config));
}

TEST(Kept, IsReadAsItWasWritten) {
  const Kept kept{{{1, {0, 1}, {2, 5, 7}}, {4, {1}, {}}}, {0, 3, 6}};
  EXPECT_EQ(architecture::kept_from_json(base::Json::parse(architecture::to_json(kept).dump())), kept);
  EXPECT_THROW(architecture::kept_from_json({{"blocks", {1}}}), nlohmann::json::exception);
}

// Whatever a block holds is in its key, in what is read again and in what it is made of.  A member that
// for_each_part() does not bind does not compile.
TEST(Kept, EveryMemberOfABlockChangesItsKeys) {
  const auto all = architecture::whole(tiny_config());
  const auto expect_other = [&](const Kept& kept, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_NE(kept, all);
    EXPECT_NE(architecture::stable_hash(kept), architecture::stable_hash(all));
    EXPECT_NE(architecture::to_json(kept), architecture::to_json(all));
    EXPECT_EQ(architecture::kept_from_json(architecture::to_json(kept)), kept);
    EXPECT_EQ(architecture::composed(all, kept), kept);
    const auto before = architecture::hashes_before(kept, 3, "plain");
    const auto of_all = architecture::hashes_before(all, 3, "plain");
    EXPECT_EQ(before[0], of_all[0]);
    EXPECT_NE(before[1], of_all[1]);
    EXPECT_NE(before[2], of_all[2]);
  };
  std::set<architecture::PartKind> seen;
  architecture::for_each_part(all.blocks.front(), [&](architecture::PartKind kind, const auto& numbers) {
    seen.insert(kind);
    for (const auto& fewer :
         {std::vector(numbers.begin(), numbers.end() - 1), std::vector(numbers.begin() + 1, numbers.end())}) {
      const auto kept = architecture::with(all, kind, 0, fewer);
      EXPECT_EQ(architecture::numbers_of(kept, kind, 0), fewer);
      expect_other(kept, std::string(base::word(kind)));
    }
  });
  expect_other(architecture::without_block(all, 0), "number");
  for (const auto kind : architecture::kPartKinds)
    EXPECT_EQ(seen.contains(kind), architecture::half_of(kind).has_value()) << base::word(kind);
}

TEST(Kept, KeysOfABlockAreOfWhatComesBeforeIt) {
  const auto all = architecture::whole(tiny_config());
  const auto keys = architecture::hashes_before(all, 3, "plain");
  auto narrow = all;
  narrow.hidden.pop_back();
  for (std::size_t block = 0; block < 3; ++block) {
    EXPECT_NE(architecture::hashes_before(narrow, 3, "plain")[block], keys[block]);
    EXPECT_NE(architecture::hashes_before(all, 3, "compensated")[block], keys[block]);
  }
  const auto last = architecture::hashes_before(architecture::with_channels(all, 2, {0}), 3, "plain");
  EXPECT_EQ(last, keys);
}

TEST(Kept, WritesNeighboursAsPairsAndReadsListsToo) {
  const Kept kept{{{0, {0, 1}, {3, 4, 5, 6, 9, 10, 2, 1}}, {1, {0, 1, 2}, {}}}, {0, 1, 2, 7}};
  const auto json = architecture::to_json(kept);
  EXPECT_EQ(
      json.dump(),
      R"({"blocks":[0,1],"kv_groups":[[0,1],[[0,2]]],"channels":[[[3,6],9,10,2,1],[]],"hidden":[[0,2],7]})");
  EXPECT_EQ(architecture::kept_from_json(json), kept);
  EXPECT_EQ(
      architecture::kept_from_json(base::Json::parse(
          R"({"blocks":[0,1],"kv_groups":[[0,1],[0,1,2]],"channels":[[3,4,5,6,9,10,2,1],[]],"hidden":[0,1,2,7]})")),
      kept);
}

// 128 blocks of Llama 3.1 405B.
TEST(Kept, OfALargeModelIsShort) {
  Kept kept;
  for (std::int64_t block = 0; block < 128; ++block)
    kept.blocks.push_back({block, architecture::counted(8), architecture::counted(53248)});
  kept.hidden = architecture::counted(16384);
  const auto text = architecture::to_json(kept).dump(1);
  EXPECT_LT(text.size(), 100'000U);
  EXPECT_EQ(architecture::kept_from_json(base::parse_json(text)), kept);
}

// A pair of a stranger's file may stand for more numbers than any memory holds.
TEST(Kept, IsNotReadFromPairsThatAreNone) {
  for (const auto* hidden : {"[[0,1000000000000000000]]", "[[5,4]]", "[[-3,-1]]", "[[1]]", "[[]]",
                             "[[0,\"1\"]]", "3", "[-1]", "[[0,9],[0,9]]"}) {
    SCOPED_TRACE(hidden);
    const auto json = base::Json::parse(
        std::string(R"({"blocks":[],"kv_groups":[],"channels":[],"hidden":)") + hidden + "}");
    EXPECT_THROW(architecture::kept_from_json(json, 15), nlohmann::json::exception);
  }
}

TEST(Kept, OfTheLargestNumberIsRead) {
  const auto largest = std::numeric_limits<std::int64_t>::max();
  const Kept kept{{}, {largest - 3, largest - 2, largest - 1, largest}}, one{{}, {largest}};
  EXPECT_EQ(architecture::kept_from_json(architecture::to_json(kept)), kept);
  EXPECT_EQ(architecture::kept_from_json(architecture::to_json(one)), one);
}

TEST(Kept, HashTellsOnesApartAndNeverChanges) {
  const Kept a{{{0, {0}, {0, 1}}, {1, {0}, {2}}}, {0, 1}}, b{{{0, {0}, {0}}, {1, {0}, {1, 2}}}, {0, 1}};
  EXPECT_NE(architecture::stable_hash(a), architecture::stable_hash(b));
  EXPECT_EQ(architecture::stable_hash(a), architecture::stable_hash(Kept(a)));
  EXPECT_EQ(architecture::stable_hash(a), "1ea5e3be67a029f7b0663d8af84a9c34");
}

}  // namespace
}  // namespace retort
