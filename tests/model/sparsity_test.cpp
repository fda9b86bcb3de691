#include "retort/model/sparsity.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/model/forward.h"
#include "support/masks.h"
#include "support/models_for_tests.h"
#include "support/tolerance.h"

namespace retort {
namespace {

const char* const kGate = "model.layers.1.mlp.gate_proj.weight";

// A model whose second gate matrix is 2:4.
model::Weights sparse_model() {
  auto weights = test::tiny_model(test::tiny_config());
  auto groups = weights.tensor(kGate).unflatten(1, {-1, 4});
  groups.select(2, 1).zero_();
  groups.select(2, 2).zero_();
  weights.lineage.sparse_layers = {kGate};
  weights.lineage.pattern = "2:4";
  return weights;
}

TEST(Pattern, ParsesWhatItMeans) {
  const auto usual = model::parse_pattern("2:4"), other = model::parse_pattern("1:16");
  EXPECT_TRUE(usual.kept == 2 && usual.group == 4 && other.kept == 1 && other.group == 16);
}

TEST(Pattern, RefusesOtherText) {
  for (const char* text :
       {"", "2", "2:", ":4", "4:4", "5:4", "0:4", "-1:4", "2:4 ", "2:4:8", "a:b", "2:65", " 2:4"})
    EXPECT_THROW(model::parse_pattern(text), base::UsageError) << "'" << text << "'";
}

TEST(Pattern, IsCheckedGroupByGroup) {
  EXPECT_TRUE(model::holds({2, 4}, at::tensor({1., 0., 2., 0., 0., 0., 0., 3.}).view({1, 8})));
  EXPECT_FALSE(model::holds({2, 4}, at::tensor({1., 0., 2., 3., 0., 0., 0., 0.}).view({1, 8})));
  EXPECT_FALSE(model::holds({2, 4}, at::zeros({1, 6})));
}

TEST(Pattern, OneWeightTooManyIsFoundAndNamed) {
  auto weights = sparse_model();
  EXPECT_NO_THROW(model::check_pattern(weights));
  weights.tensor(kGate)[3].narrow(0, 4, 4).fill_(1e-30);
  const auto message = test::message_of<base::ValidationError>([&] { model::check_pattern(weights); });
  EXPECT_NE(message.find(kGate), std::string::npos) << message;
}

TEST(Pattern, MasksAreZeroExactlyWhereASparseLayerIs) {
  const auto weights = sparse_model();
  const auto masks = test::masks_of(weights);
  ASSERT_EQ(masks.size(), weights.units.size());
  for (std::size_t unit = 0; unit < masks.size(); ++unit) EXPECT_EQ(masks[unit].defined(), unit == 2) << unit;
  const auto place = *weights.layout.find(kGate);
  const auto& tensor = weights.layout.at(place);
  EXPECT_EQ(masks[2].scalar_type(), at::kByte);
  EXPECT_EQ(masks[2].numel(), weights.units[2].numel());
  EXPECT_TRUE(at::equal(masks[2].narrow(0, tensor.offset, tensor.numel).ne(0),
                        weights.tensor(kGate).ne(0).flatten()));
  EXPECT_EQ(masks[2].eq(0).sum().item<std::int64_t>(), tensor.numel / 2);
}

TEST(Pattern, DenseModelsHaveNoMasks) {
  for (const auto& mask : test::masks_of(test::tiny_model(test::tiny_config()))) EXPECT_FALSE(mask.defined());
}

}  // namespace
}  // namespace retort
