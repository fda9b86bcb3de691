#include "retort/eval/token_times.h"

#include <gtest/gtest.h>

#include <vector>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/models_for_tests.h"

namespace retort::eval {
namespace {

TEST(RisingTimes, ShareTheMeanWhereMoreTookLess) {
  const auto curve = rising({{1, 1.0}, {2, 4.0}, {3, 2.0}, {4, 5.0}});
  EXPECT_DOUBLE_EQ(curve.at(1), 1.0);
  EXPECT_DOUBLE_EQ(curve.at(2), 3.0);
  EXPECT_DOUBLE_EQ(curve.at(3), 3.0 + 0.1 * 5.0 / 4);  // a tenth of the mean slope
  EXPECT_DOUBLE_EQ(curve.at(4), 5.0);
}

TEST(RisingTimes, RiseWhereTheClockSawNothing) {
  const auto curve = rising({{8, -1.0}, {16, 0.0}});
  EXPECT_GT(curve.at(8), 0);
  EXPECT_GT(curve.at(16), curve.at(8));
}

base::Json made_up_times() {
  return {{"batch", 2},
          {"other_seconds", 0.5},
          {"seconds",
           {{"MLP", {{16, 1.0}, {32, 3.0}}}, {"attention of 2 heads of 4 a group", {{1, 2.0}, {2, 2.5}}}}}};
}

architecture::Block block_of(std::int64_t groups, std::int64_t width) {
  architecture::Block block;
  if (groups > 0) block.attention = architecture::Attention{2 * groups, groups, 4};
  if (width > 0) block.mlp = architecture::DenseMlp{width};
  return block;
}

TEST(TokenTimes, AreThoseOfTheHalvesBetweenMeasuredSizes) {
  const TokenTimes times(made_up_times());
  architecture::Config model;
  model.blocks = {block_of(2, 32), block_of(1, 24), block_of(0, 8), block_of(2, 0)};
  EXPECT_EQ(times.parts(model), (std::vector{0.5, 2.5, 3.0, 2.0, 2.0, 0.5, 2.5}));
  EXPECT_DOUBLE_EQ(times.seconds(model), 13.0);
  EXPECT_EQ(times.to_json(), made_up_times());
  EXPECT_EQ(times.to_json().at("batch"), 2);
}

// No time is tested: only that all parts are there, and rise.
TEST(TokenTimes, AreMeasuredOfEveryPart) {
  auto config = test::tiny_config(3, 16);
  config.max_position_embeddings = 64;
  config.blocks[1].attention->kind.window = 8;
  std::vector<std::int64_t> told;
  const TokenTimeOptions options{.batch = 2, .context = 32};
  const auto times =
      TokenTimes::measured(config, options, [&](std::int64_t done, std::int64_t) { told.push_back(done); });
  EXPECT_GE(told.size(), 4U);
  const auto parts = times.parts(config);
  ASSERT_EQ(parts.size(), 7U);
  for (std::size_t i = 1; i < parts.size(); ++i) EXPECT_GT(parts[i], 0);
  auto narrow = config;
  narrow.blocks[0].mlp = architecture::DenseMlp{architecture::mlp_width(config.blocks[0]) / 2};
  EXPECT_LT(times.seconds(narrow), times.seconds(config));
  EXPECT_EQ(TokenTimes(times.to_json()).parts(config), parts);
  EXPECT_GT(token_times_bytes(config, options), 0);
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { TokenTimes::measured(config, {.context = 65}); }),
              "target.context: expected 25 to 64 tokens of this model, found 65");
}

}  // namespace
}  // namespace retort::eval
