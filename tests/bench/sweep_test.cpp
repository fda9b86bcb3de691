// Which sizes are measured, and what is advised on made-up rates.
#include "retort/bench/sweep.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace retort::bench {
namespace {

using Widths = std::vector<std::int64_t>;

Sweep sweep_of(const std::vector<double>& rates) {
  Sweep sweep{.center = 1024, .multiples = {}};
  std::int64_t multiple = 1;
  for (const double rate : rates) {
    sweep.multiples.push_back({multiple, rate, {multiple}});
    multiple *= 2;
  }
  return sweep;
}

TEST(Sweep, MeasuresMultiplesUpToAQuarterOfTheWidth) {
  EXPECT_EQ(multiples_of_sweep(192), (Widths{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(multiples_of_sweep(100'000).back(), 256);
  EXPECT_EQ(multiples_of_sweep(3), Widths());
}

TEST(Sweep, MeasuresOddMultiplesOnBothSidesOfTheWidth) {
  EXPECT_EQ(widths_of_sweep(1536, 256), (Widths{1280, 1792}));
  EXPECT_EQ(widths_of_sweep(1536, 64), (Widths{1216, 1472, 1600, 1856}));
  EXPECT_EQ(widths_of_sweep(512, 128), (Widths{384, 640}));
  for (const std::int64_t center : {7, 192, 576, 4864, 32768})
    for (const auto multiple : multiples_of_sweep(center))
      for (const auto width : widths_of_sweep(center, multiple)) {
        EXPECT_EQ(width % multiple, 0);
        EXPECT_EQ(width / multiple % 2, 1);
        EXPECT_GE(width, center / 2);
        EXPECT_LE(width, 3 * center / 2);
      }
}

TEST(Sweep, RateOfAMultipleIsThatOfAllItsMultiples) {
  const Sweep sweep = sweep_of({80, 100, 120});
  EXPECT_DOUBLE_EQ(sweep.rate_of(4), 120);
  EXPECT_DOUBLE_EQ(sweep.rate_of(2), 110);  // each second multiple of 2 is one of 4
  EXPECT_DOUBLE_EQ(sweep.rate_of(1), 95);
  EXPECT_DOUBLE_EQ(sweep.rate_of(1024), 120);
  EXPECT_DOUBLE_EQ(sweep.share_of(1), 95.0 / 120);
}

TEST(Sweep, AdvisesTheSmallestMultipleThatLosesLittle) {
  EXPECT_EQ(sweep_of({100, 100, 100, 100}).advised_multiple(), 1);
  EXPECT_EQ(sweep_of({60, 70, 80, 92, 100, 100}).advised_multiple(), 8);  // half of its widths lose more
  EXPECT_EQ(sweep_of({60, 70, 80, 80, 100, 100}).advised_multiple(), 16);
  EXPECT_EQ(sweep_of({60, 60, 60, 60, 60, 100}).advised_multiple(), 32);
  EXPECT_EQ(sweep_of({50, 50, 100, 100, 90, 90}).advised_multiple(), 4);  // large powers of two lose
  EXPECT_EQ(sweep_of({98, 97, 99, 100, 96}).advised_multiple(), 1);       // noise
  EXPECT_EQ(Sweep().advised_multiple(), 1);
  EXPECT_EQ(Sweep().share_of(8), 1);
}

architecture::Config small_config() {
  architecture::Config config;
  config.vocab_size = 50;
  config.hidden_size = 16;
  config.blocks = {{architecture::Attention{4, 2, 4}, architecture::DenseMlp{24}}};
  return config;
}

TEST(SweepPlan, VariesOneSizeOfTheModel) {
  const auto width = mlp_width_sweep(small_config(), 8);
  EXPECT_EQ(width.center, 24);
  EXPECT_EQ(width.weights_of(20), (std::vector<Linear>{{40, 16}, {16, 20}}));
  const auto hidden = hidden_size_sweep(small_config(), 8);
  EXPECT_EQ(hidden.center, 16);
  EXPECT_EQ(hidden.weights_of(12), (std::vector<Linear>{{32, 12}, {12, 16}, {48, 12}, {12, 24}}));
}

TEST(SweepPlan, CountsThreePassesOfEveryWidth) {
  const auto plan = mlp_width_sweep(small_config(), 8);
  double expected = 0;
  for (const auto multiple : multiples_of_sweep(24))
    for (const auto width : widths_of_sweep(24, multiple))
      expected += 3 * 2.0 * 8 * 16 * 3 * static_cast<double>(width);
  EXPECT_EQ(plan.flops_per_round(), expected);
}

// How fast a machine is cannot be asserted.
TEST(SweepPlan, IsMeasuredAtEveryWidth) {
  const Effort effort{.seconds = 0, .least_rounds = 1};
  const auto sweep = measure(mlp_width_sweep(small_config(), 8), at::kFloat, at::kCPU, effort, {});
  ASSERT_EQ(sweep.multiples.size(), 3U);
  for (const auto& one : sweep.multiples) {
    EXPECT_EQ(one.widths, widths_of_sweep(24, one.multiple));
    EXPECT_TRUE(std::isfinite(one.flops_per_second) && one.flops_per_second > 0);
  }
  auto without = small_config();
  without.blocks = {{architecture::Attention{4, 2, 4}, {}}};
  EXPECT_TRUE(measure(mlp_width_sweep(without, 8), at::kFloat, at::kCPU, effort, {}).multiples.empty());
}

TEST(ValueRates, AreOfKvGroupsAndOfHeadDims) {
  const Effort effort{.seconds = 0, .least_rounds = 1};
  const auto values = [](const std::vector<ValueRate>& rates) {
    Widths list;
    for (const auto& rate : rates) {
      list.push_back(rate.value);
      EXPECT_TRUE(std::isfinite(rate.flops_per_second) && rate.flops_per_second > 0);
    }
    return list;
  };
  EXPECT_EQ(values(measure_kv_groups(small_config(), 8, at::kFloat, at::kCPU, effort, {})), (Widths{1, 2}));
  EXPECT_EQ(values(measure_head_dims(small_config(), 8, at::kBFloat16, at::kCPU, effort, {})),
            (Widths{32, 48, 64, 80, 96, 128}));
  auto many = small_config();
  many.blocks.front().attention = architecture::Attention{40, 40, 2};
  const auto counts = values(measure_kv_groups(many, 8, at::kFloat, at::kCPU, effort, {}));
  EXPECT_EQ(counts.size(), 14U);
  EXPECT_EQ(counts.back(), 40);
}

}  // namespace
}  // namespace retort::bench
