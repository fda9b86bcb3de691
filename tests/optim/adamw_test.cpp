// AdamW over a model's layout: rates by role, weight decay on matrices only, parts of a unit.
#include "retort/optim/adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "retort/base/error.h"
#include "retort/ops/reference/formulas.h"
#include "support/tolerance.h"

namespace retort {
namespace {

architecture::Config config(bool tied) {
  architecture::Config config;
  config.vocab_size = 30;
  config.hidden_size = 16;
  config.max_position_embeddings = 8;
  config.tie_word_embeddings = tied;
  config.blocks.assign(2, {architecture::Attention{2, 1, 8}, architecture::DenseMlp{20}});
  return config;
}

std::vector<optim::UnitRange> whole(const architecture::Layout& layout) {
  std::vector<optim::UnitRange> ranges;
  for (const auto& unit : layout.units) ranges.push_back({0, unit.size});
  return ranges;
}

constexpr optim::OptimOptions kOptions{.lr = 1e-2, .embedding_lr = 1e-3, .weight_decay = 0.1};

TEST(AdamW, UsesEachRolesRateAndDecaysOnlyMatrices) {
  for (const bool tied : {false, true}) {
    at::manual_seed(1);
    const auto layout = architecture::make_layout(config(tied));
    optim::AdamW adamw(layout, whole(layout), kOptions, at::kCPU);
    for (std::size_t unit = 0; unit < layout.units.size(); ++unit) {
      const auto p = at::randn({layout.units[unit].size}), g = at::randn({layout.units[unit].size});
      const auto before = p.clone();
      auto copy = at::zeros({p.numel()}, at::kBFloat16);
      adamw.update(static_cast<std::int64_t>(unit), p, g, copy, 1, 0.5, 2.0);
      for (const auto& tensor : layout.units[unit].tensors) {
        SCOPED_TRACE(tensor.name);
        const auto part = [&](const at::Tensor& x) { return x.narrow(0, tensor.offset, tensor.numel); };
        auto expected = part(before).to(at::kDouble), m = at::zeros_like(expected),
             v = at::zeros_like(expected);
        const bool table =
            tensor.role == architecture::Role::embedding || tensor.role == architecture::Role::head;
        ops::reference::adamw(expected, part(g).to(at::kDouble) * 2, m, v, (table ? 1e-3 : 1e-2) * 0.5, 0.9,
                              0.95, 1e-8, tensor.is_matrix() ? 0.1 : 0, 1);
        test::expect_close(part(p), expected, test::tolerance(at::kFloat));
        test::expect_identical(part(copy), part(p).to(at::kBFloat16));
      }
    }
  }
}

TEST(AdamW, PartsOfAUnitMakeTheStepOfTheWhole) {
  const auto layout = architecture::make_layout(config(false));
  at::manual_seed(3);
  const auto size = layout.units[1].size, cut = size / 3;
  const auto g = at::randn({size}), start = at::randn({size});
  auto ranges = whole(layout);
  optim::AdamW one(layout, ranges, kOptions, at::kCPU);
  const auto p = start.clone();
  one.update(1, p, g, {}, 1, 1, 1);
  std::vector<at::Tensor> parts;
  for (const auto& range : {optim::UnitRange{0, cut}, optim::UnitRange{cut, size - cut}}) {
    ranges[1] = range;
    optim::AdamW part(layout, ranges, kOptions, at::kCPU);
    parts.push_back(start.narrow(0, range.begin, range.count).clone());
    part.update(1, parts.back(), g.narrow(0, range.begin, range.count), {}, 1, 1, 1);
  }
  test::expect_close(at::cat(parts), p, 1e-6);
}

TEST(AdamW, RefusesAMasterInDouble) {
  const auto layout = architecture::make_layout(config(false));
  optim::AdamW adamw(layout, whole(layout), kOptions, at::kCPU);
  const auto p = at::ones({layout.units[1].size}, at::kDouble);
  EXPECT_THROW(adamw.update(1, p, at::ones_like(p), {}, 1, 1, 1), base::InternalError);
  test::expect_identical(p, at::ones_like(p));
}

}  // namespace
}  // namespace retort
