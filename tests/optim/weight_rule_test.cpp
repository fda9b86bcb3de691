// Rules that weights keep to: zeros that stay, and another one that the library does not have.
#include "retort/optim/weight_rule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "optim/grid_rule.h"
#include "retort/optim/adamw.h"
#include "support/tolerance.h"

namespace retort {
namespace {

constexpr optim::OptimOptions kLearning{.lr = 1e-2, .embedding_lr = 1e-3, .weight_decay = 0.1};
constexpr std::int64_t kCount = 3 << 19;  // more than is projected at once

architecture::Layout one_block() {
  architecture::Config config;
  config.vocab_size = 30;
  config.hidden_size = 16;
  config.max_position_embeddings = 8;
  config.blocks.assign(1, {architecture::Attention{2, 1, 8}, architecture::DenseMlp{20}});
  return architecture::make_layout(config);
}

std::vector<optim::UnitRange> all_of(const architecture::Layout& layout) {
  std::vector<optim::UnitRange> ranges;
  for (const auto& unit : layout.units) ranges.push_back({0, unit.size});
  return ranges;
}

at::Tensor every_other_pair(std::int64_t count) {
  return at::arange(count).remainder(4).ge(2).to(at::kByte);
}

TEST(KeepZeros, LeavesNothingOfMaskedWeightsInAGradient) {
  at::manual_seed(4);
  const auto mask = every_other_pair(kCount);
  const optim::KeepZeros rule({at::Tensor(), mask});
  const auto gradient = at::randn({kCount}), masked = gradient.clone();
  masked[0] = std::numeric_limits<float>::infinity();
  rule.project_gradient(1, masked);
  test::expect_identical(masked, gradient * mask);
  const auto other = at::randn({7}), same = other.clone();
  rule.project_gradient(0, same);
  test::expect_identical(same, other, "a unit without a mask");
}

TEST(KeepZeros, KeepsThemOverManySteps) {
  at::manual_seed(2);
  const auto layout = one_block();
  const auto count = layout.units[1].size;
  auto mask = at::zeros({count}, at::kByte);  // 0 between tensors too, where nothing is updated
  for (const auto& tensor : layout.units[1].tensors)
    mask.narrow(0, tensor.offset, tensor.numel).copy_(every_other_pair(tensor.numel));
  const auto zeros = mask.eq(0);
  const optim::KeepZeros rule({{}, mask, {}});
  optim::AdamW adamw(layout, all_of(layout), kLearning, at::kCPU, &rule);
  const auto p = at::randn({count}).masked_fill_(zeros, 0), copy = at::zeros({count}, at::kBFloat16);
  for (std::int64_t step = 1; step <= 10; ++step) {
    const auto g = at::randn({count});
    rule.project_gradient(1, g);
    adamw.update(1, p, g, copy, step, 1, 1);
  }
  for (const auto& x : {p, copy, adamw.units()[1].m, adamw.units()[1].v}) {
    EXPECT_EQ(x.masked_select(zeros).abs().max().item<float>(), 0);
    EXPECT_GT(x.masked_select(mask.to(at::kBool)).abs().max().item<float>(), 0);
  }
  test::expect_identical(copy, p.to(at::kBFloat16));
}

// The master weights move as without it, by less than a step of the grid too.
TEST(WeightRule, MayMakeTheCopyThatIsComputedWith) {
  at::manual_seed(3);
  const auto layout = one_block();
  const auto count = layout.units[1].size;
  const test::GridRule rule(1.0 / 16);
  optim::AdamW bound(layout, all_of(layout), kLearning, at::kCPU, &rule);
  optim::AdamW free(layout, all_of(layout), kLearning, at::kCPU);
  const auto start = at::randn({count}), p = start.clone(), p_free = start.clone();
  const auto copy = at::zeros({count}, at::kBFloat16), copy_free = at::zeros({count}, at::kBFloat16);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const auto g = at::randn({count});
    bound.update(1, p, g, copy, step, 1, 1);
    free.update(1, p_free, g, copy_free, step, 1, 1);
  }
  test::expect_identical(p, p_free);
  test::expect_identical(copy, (p * 16).round().div(16).to(at::kBFloat16));
  EXPECT_FALSE(at::equal(copy, copy_free));
}

}  // namespace
}  // namespace retort
