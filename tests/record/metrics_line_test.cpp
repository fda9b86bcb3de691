#include "retort/record/metrics_line.h"

#include <gtest/gtest.h>

#include <cmath>

namespace retort::record {
namespace {

using base::Json;

const MetricsLine kLine{.stage = "student",
                        .step = 7,
                        .tokens = 1792,
                        .loss = 2.5,
                        .parts = {{"kl_divergence", 0.25}, {"a loss of tomorrow", 3}},
                        .gradient_norm = 1.5,
                        .lr = 1e-4,
                        .tokens_per_second = 900,
                        .peak_fraction = 0.5,
                        .seconds = 12,
                        .phase_seconds = {{"data", 0.5}, {"backward", 1.5}},
                        .operation_seconds = {{"product", 1.25}},
                        .held_out = {{"en", 2.75}, {"de", 3.25}}};

TEST(MetricsLine, IsWrittenAsTheFormatSays) {
  EXPECT_EQ(
      to_json(kLine).dump(),
      R"({"stage":"student","step":7,"tokens":1792,"loss":2.5,)"
      R"("parts":{"kl_divergence":0.25,"a loss of tomorrow":3.0},"gradient_norm":1.5,"lr":0.0001,)"
      R"("tokens_per_second":900.0,"peak_fraction":0.5,"seconds":12.0,"phase_seconds":{"data":0.5,"backward":1.5},"operation_seconds":{"product":1.25},"held_out":{"en":2.75,"de":3.25}})");
}

TEST(MetricsLine, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(to_json({.stage = "s", .held_out = {{"en", 2}}}).dump(),
            R"({"stage":"s","step":0,"tokens":0,"held_out":{"en":2.0}})");
}

TEST(MetricsLine, IsReadAsItWasWritten) {
  EXPECT_EQ(to_json(metrics_line(to_json(kLine))), to_json(kLine));
}

TEST(MetricsLine, TakesOfOtherShapesWhatItCan) {
  const auto line = metrics_line(Json::parse(
      R"({"stage": 3, "step": 1e300, "tokens": "x", "loss": null, "parts": [1], "held_out": {"a": null, "b": 2}})"));
  EXPECT_EQ(line.stage, "");
  EXPECT_EQ(line.step, 0);
  EXPECT_EQ(line.tokens, 0);
  EXPECT_FALSE(line.loss);
  EXPECT_TRUE(line.parts.empty());
  ASSERT_EQ(line.held_out.size(), 2U);
  EXPECT_TRUE(std::isnan(line.held_out[0].second)) << "it was not finite";
  EXPECT_EQ(line.held_out[1].second, 2);
  EXPECT_EQ(metrics_line(Json::array({1})).stage, "");
}

}  // namespace
}  // namespace retort::record
