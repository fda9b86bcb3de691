// Rotary tables of packed documents.
#include "retort/model/tokens.h"
#include "retort/architecture/rope.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/model/rope.h"
#include "support/reference_model.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using Kind = architecture::Rope::Kind;

constexpr std::int64_t kContext = 8, kHeadDim = 10;

architecture::Config config_of(Kind kind) {
  auto config = test::config_of({.head_dim = kHeadDim});
  config.max_position_embeddings = kContext;
  auto& rope = config.ropes.front();
  rope.kind = kind;
  rope.factor = 4;
  rope.original_context = 6;
  rope.short_factors = {1, 1.1, 1.2, 1.3, 1.4};
  rope.long_factors = {1, 2, 3, 4, 5};
  rope.query_growth = 0.1;
  return config;
}

// Each document as if it were alone and nothing were known, by positions that the processor counts.
void expect_documents(const architecture::Config& config, const model::TokenLayout& layout) {
  const auto& rope = config.ropes.front();
  const auto* const turning = layout.turning(*config.blocks.front().attention);
  for (std::size_t i = 0; i + 1 < layout.starts.size(); ++i) {
    const auto begin = layout.starts[i], length = layout.starts[i + 1] - begin;
    std::vector<std::int64_t> positions;
    for (std::int64_t position = 0; position < length; ++position) positions.push_back(position);
    const auto positions_N = model::index_tensor(std::span<const std::int64_t>(positions), at::kCPU);
    const auto expected =
        ops::rotary_tables(positions_N, model::rope_frequencies(rope, kHeadDim, kContext, length),
                           architecture::rope_factor(rope));
    test::expect_identical(turning->rotary.cos_NE2.narrow(0, begin, length), expected.cos_NE2, "cos");
    test::expect_identical(turning->rotary.sin_NE2.narrow(0, begin, length), expected.sin_NE2, "sin");
    test::expect_identical(turning->query_factor_N.narrow(0, begin, length),
                           model::query_factors(rope, positions_N), "query factors");
  }
}

// Documents that are shorter and longer than the contexts, in every order.
TEST(TokenLayout, TurnsEachDocumentAsIfItWereAloneWhateverIsKnown) {
  model::RopeFrequencies frequencies;
  for (const auto kind : {Kind::plain, Kind::linear, Kind::dynamic, Kind::longrope}) {
    const auto config = config_of(kind);
    for (const auto& starts : std::vector<std::vector<std::int64_t>>{
             {0, 3, 15}, {0, 12, 15}, {0, 9, 18, 19}, {0, 5}, {0, 20, 27, 30}})
      expect_documents(config, model::make_token_layout(config, starts, at::kCPU, frequencies));
  }
}

// As transformers has it: the long factors begin beyond the original context, not at its last position.
TEST(RopeFrequencies, OfLongropeAreShortUpToTheOriginalContextAndLongBeyondIt) {
  const auto rope = config_of(Kind::longrope).ropes.front();
  const auto plain_R2 = ops::rotary_frequencies(kHeadDim, rope.theta);
  const auto of_length = [&](std::int64_t length) {
    return model::rope_frequencies(rope, kHeadDim, kContext, length);
  };
  const auto length = rope.original_context;
  test::expect_identical(of_length(length), plain_R2 / at::tensor(rope.short_factors, plain_R2.options()));
  test::expect_identical(of_length(length + 1), plain_R2 / at::tensor(rope.long_factors, plain_R2.options()));
  EXPECT_TRUE(model::same_angles(rope, kContext, length - 1, length));
  EXPECT_FALSE(model::same_angles(rope, kContext, length, length + 1));
}

}  // namespace
}  // namespace retort
