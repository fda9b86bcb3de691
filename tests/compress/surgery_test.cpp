#include "retort/compress/surgery.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/model/sparsity.h"
#include "retort/prune/evaluator.h"
#include "support/models_for_tests.h"
#include "support/outside_data.h"
#include "support/random_text.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using architecture::Kept;

// Every second block is kept; of its channels those whose number has a remainder below 2 by 3.
Kept thinned(const architecture::Config& config) {
  auto kept = architecture::whole(config);
  for (std::size_t block = 0; block < config.blocks.size(); block += 2) {
    auto& channels = kept.blocks[block].channels;
    channels.clear();
    for (std::int64_t channel = 0; channel < architecture::mlp_width(config.blocks[block]); ++channel)
      if ((channel + static_cast<std::int64_t>(block)) % 3 < 2) channels.push_back(channel);
  }
  for (std::int64_t block = 1; block < std::ssize(config.blocks); block += 2)
    kept = architecture::without_block(kept, block);
  const auto shorter = [](const auto& a, const auto& b) { return a.channels.size() < b.channels.size(); };
  const auto shortest = std::min_element(kept.blocks.begin(), kept.blocks.end(), shorter)->channels.size();
  for (auto& block : kept.blocks) block.channels.resize(shortest);
  return kept;
}

at::Tensor masked_logits(const model::Weights& weights, const Kept& candidate,
                         const calibrate::Batch& batch) {
  std::vector<at::Tensor> masks;
  std::vector<bool> keeps;
  for (std::size_t block = 0; block < weights.config.blocks.size(); ++block) {
    const auto* kept = candidate.find(static_cast<std::int64_t>(block));
    keeps.push_back(kept != nullptr);
    masks.push_back(
        at::zeros({architecture::mlp_width(weights.config.blocks[block])}, weights.units[0].options()));
    for (const auto channel : kept ? kept->channels : std::vector<std::int64_t>()) masks.back()[channel] = 1;
  }
  return test::plain_logits(weights, batch, masks, keeps);
}

void expect_masked_is_sliced(const model::Weights& weights, const Kept& candidate) {
  const auto sliced = compress::sliced(weights, candidate);
  for (const auto& batch : calibrate::calibration_batches(
           test::random_domains(weights.config.vocab_size, 2, 48), weights.config, at::kCPU)) {
    const auto masked = masked_logits(weights, candidate, batch);
    EXPECT_LT(test::largest_difference(masked, test::plain_logits(sliced, batch)), 1e-6);
    EXPECT_GT(test::largest_difference(masked, test::plain_logits(weights, batch)), 1e-2);
  }
}

TEST(Surgery, MaskedIsSlicedWithBlocksDropped) {
  const auto weights = test::tiny_model(test::tiny_config());
  expect_masked_is_sliced(weights, architecture::without_block(architecture::whole(weights.config), 0));
}

// A branch whose last matrix is zero adds nothing: the same as not having it.
TEST(Surgery, MaskedIsSlicedWithHalvesOfBlocksDropped) {
  const auto weights = test::tiny_model(test::tiny_config(4));
  auto candidate = architecture::with_kv_groups(architecture::whole(weights.config), 1, {});
  candidate = architecture::with_channels(candidate, 2, {});
  candidate = architecture::with_channels(candidate, 3, {1, 2, 5, 9});
  candidate = architecture::with_kv_groups(candidate, 3, {});
  auto zeroed = model::converted(weights, at::kDouble);
  zeroed.tensor("model.layers.1.self_attn.o_proj.weight").zero_();
  zeroed.tensor("model.layers.2.mlp.down_proj.weight").zero_();
  zeroed.tensor("model.layers.3.self_attn.o_proj.weight").zero_();
  std::vector<at::Tensor> masks(4);
  masks[3] = at::zeros({16}, at::kDouble);
  for (const std::int64_t channel : {1, 2, 5, 9}) masks[3][channel] = 1;
  const auto sources = test::random_domains(weights.config.vocab_size, 2, 48);
  const auto sliced = compress::sliced(weights, candidate);
  for (const auto& batch : calibrate::calibration_batches(sources, weights.config, at::kCPU)) {
    const auto expected = test::plain_logits(zeroed, batch, masks);
    EXPECT_LT(test::largest_difference(expected, test::plain_logits(sliced, batch)), 1e-9);
    EXPECT_GT(test::largest_difference(expected, test::plain_logits(weights, batch)), 1e-2);
  }
  const prune::Evaluator evaluator(weights, sources, {});
  EXPECT_LT(evaluator.difference(candidate, sliced), 1e-12);

  const test::TemporaryDirectory directory;
  model::save_model(sliced, directory / "model", {}, {});
  const auto again = model::load_weights(directory / "model", at::kDouble, at::kCPU);
  EXPECT_EQ(again.config.blocks, sliced.config.blocks);
  EXPECT_EQ(again.lineage.kept, sliced.lineage.kept);
}

// The same model with zeros where something is removed, written out from Hugging Face names.
void zero_heads(model::Weights& weights, std::int64_t block, std::int64_t first_head, std::int64_t heads) {
  const auto width = weights.config.blocks[static_cast<std::size_t>(block)].attention->head_dim;
  weights.tensor(base::join("model.layers.", block, ".self_attn.o_proj.weight"))
      .narrow(1, first_head * width, heads * width)
      .zero_();
}

TEST(Surgery, MaskedIsSlicedWithHeadsRemoved) {
  for (const bool tied : {true, false}) {
    const auto weights = test::tiny_model(test::tiny_config(3, 16, tied));
    auto candidate = architecture::with_kv_groups(architecture::whole(weights.config), 0, {1});
    candidate = architecture::with_kv_groups(candidate, 2, {0});
    auto zeroed = model::converted(weights, at::kDouble);
    zero_heads(zeroed, 0, 0, 2);
    zero_heads(zeroed, 2, 2, 2);
    const auto sliced = compress::sliced(weights, candidate);
    const auto sources = test::random_domains(40, 2, 48);
    for (const auto& batch : calibrate::calibration_batches(sources, weights.config, at::kCPU)) {
      const auto expected = test::plain_logits(zeroed, batch);
      EXPECT_LT(test::largest_difference(expected, test::plain_logits(sliced, batch)), 1e-9);
      EXPECT_GT(test::largest_difference(expected, test::plain_logits(weights, batch)), 1e-2);
    }
    const prune::Evaluator evaluator(weights, sources, {});
    EXPECT_LT(evaluator.difference(candidate, sliced), 1e-12);
    const std::vector<std::vector<std::int64_t>> groups = {{1}, {0, 1}, {0}};
    for (std::size_t block = 0; block < groups.size(); ++block)
      EXPECT_EQ(sliced.lineage.kept.blocks[block].kv_groups, groups[block]);
    EXPECT_FALSE(sliced.lineage.identity());
    const test::TemporaryDirectory directory;
    model::save_model(sliced, directory / "model", {}, {});
    const auto again = model::load_weights(directory / "model", at::kDouble, at::kCPU);
    EXPECT_EQ(again.config.blocks, sliced.config.blocks);
    EXPECT_EQ(again.lineage.kept, sliced.lineage.kept);
  }
}

// A hidden feature is gone when nothing writes it: its embedding and its rows of o_proj and down_proj are
// zero.
TEST(Surgery, MaskedIsSlicedWithHiddenFeaturesRemoved) {
  const std::vector<std::int64_t> kept = {0, 1, 3, 4, 6, 8, 9, 12, 13, 15}, gone = {2, 5, 7, 10, 11, 14};
  for (const bool tied : {true, false}) {
    auto config = test::tiny_config(3, 16, tied);
    config.rms_norm_eps = 0.03;  // so large that its scale matters
    const auto weights = test::tiny_model(config);
    auto candidate = architecture::with_kv_groups(architecture::whole(config), 1, {0});
    candidate = architecture::without_block(candidate, 0);
    candidate.hidden = kept;
    auto zeroed = model::converted(weights, at::kDouble);
    zero_heads(zeroed, 1, 2, 2);
    const auto index = model::index_tensor(gone, at::kCPU);
    zeroed.tensor("model.embed_tokens.weight").index_fill_(1, index, 0);
    for (const int block : {0, 1, 2})
      for (const char* name : {"self_attn.o_proj", "mlp.down_proj"})
        zeroed.tensor(base::join("model.layers.", block, ".", name, ".weight")).index_fill_(0, index, 0);
    const auto sliced = compress::sliced(weights, candidate);
    const auto sources = test::random_domains(40, 2, 48);
    for (const auto& batch : calibrate::calibration_batches(sources, config, at::kCPU)) {
      const auto expected = test::plain_logits(zeroed, batch, {}, {false, true, true});
      EXPECT_LT(test::largest_difference(expected, test::plain_logits(sliced, batch)), 1e-9);
      EXPECT_GT(test::largest_difference(expected, test::plain_logits(weights, batch)), 1e-2);
    }
    const prune::Evaluator evaluator(weights, sources, {});
    EXPECT_LT(evaluator.difference(candidate, sliced), 1e-12);
    EXPECT_EQ(sliced.lineage.kept.hidden, kept);
    EXPECT_EQ(sliced.lineage.teacher_hidden, 16);
    // Once more, from the smaller model.
    auto again = architecture::whole(sliced.config);
    again.hidden = {1, 2, 3, 9};
    EXPECT_EQ(compress::sliced(sliced, again).lineage.kept.hidden, (std::vector<std::int64_t>{1, 3, 4, 15}));
  }
}

TEST(Surgery, MaskedIsSlicedWithChannelsRemoved) {
  auto candidate =
      architecture::whole(test::tiny_config().blocks.empty() ? architecture::Config() : test::tiny_config());
  for (auto& block : candidate.blocks) block.channels = {1, 2, 5, 6, 7, 11, 12, 15};
  expect_masked_is_sliced(test::tiny_model(test::tiny_config()), candidate);
}

TEST(Surgery, MaskedIsSlicedWithBothAndAnUntiedHead) {
  const auto weights = test::tiny_model(test::tiny_config(4, 16, false));
  expect_masked_is_sliced(weights, thinned(weights.config));
}

TEST(Surgery, MaskedIsSlicedOnARealModel) {
  const auto weights = model::load_weights(test::source() / "models" / "europa-5m", at::kDouble, at::kCPU);
  expect_masked_is_sliced(weights, thinned(weights.config));
}

TEST(Surgery, TheWholeModelIsCopied) {
  const auto weights = test::tiny_model(test::tiny_config());
  const auto copy = compress::sliced(weights, architecture::whole(weights.config));
  EXPECT_EQ(copy.config, weights.config);
  EXPECT_TRUE(copy.lineage.identity());
  for (std::size_t unit = 0; unit < weights.units.size(); ++unit) {
    EXPECT_TRUE(at::equal(copy.units[unit], weights.units[unit]));
    EXPECT_FALSE(copy.units[unit].is_alias_of(weights.units[unit]));
  }
}

TEST(Surgery, DifferenceFindsAWrongSlice) {
  const auto weights = test::tiny_model(test::tiny_config());
  const prune::Evaluator evaluator(weights, test::random_domains(40), {});
  const auto candidate = thinned(weights.config);
  auto sliced = compress::sliced(weights, candidate);
  EXPECT_LT(evaluator.difference(candidate, sliced), 1e-12);
  sliced.tensor("model.layers.1.mlp.up_proj.weight")[2].neg_();
  EXPECT_GT(evaluator.difference(candidate, sliced), 1e-6);
}

TEST(Surgery, LineagesCompose) {
  const auto original = test::tiny_model(test::tiny_config(5, 20));
  const auto once = compress::sliced(original, thinned(original.config));
  const auto twice = compress::sliced(once, thinned(once.config));
  EXPECT_EQ(twice.lineage.teacher_blocks, 5);
  EXPECT_EQ(twice.lineage.kept.numbers(), (std::vector<std::int64_t>{0, 4}));
  for (std::size_t block = 0; block < 2; ++block) {
    const auto teacher =
        "model.layers." + std::to_string(twice.lineage.kept.blocks[block].number) + ".mlp.gate_proj.weight";
    const auto rows = model::index_tensor(twice.lineage.kept.blocks[block].channels, at::kCPU);
    EXPECT_TRUE(at::equal(twice.tensor("model.layers." + std::to_string(block) + ".mlp.gate_proj.weight"),
                          original.tensor(teacher).index_select(0, rows)));
  }
}

TEST(Surgery, SparseLayersMoveAlongUnlessTheirGroupsAreTorn) {
  auto weights = test::tiny_model(test::tiny_config());
  for (const char* name : {"model.layers.2.mlp.gate_proj.weight", "model.layers.2.mlp.down_proj.weight"}) {
    weights.tensor(name).unflatten(1, {-1, 4}).narrow(2, 0, 2).zero_();
    weights.lineage.sparse_layers.push_back(name);
  }
  weights.lineage.pattern = "2:4";
  const auto shorter =
      compress::sliced(weights, architecture::without_block(architecture::whole(weights.config), 0));
  EXPECT_EQ(shorter.lineage.sparse_layers, (std::vector<std::string>{"model.layers.1.mlp.gate_proj.weight",
                                                                     "model.layers.1.mlp.down_proj.weight"}));
  auto torn = architecture::whole(weights.config);
  for (auto& block : torn.blocks) block.channels = {0, 2, 3, 6, 7, 9, 10, 11};
  const auto narrow = compress::sliced(weights, torn);
  EXPECT_EQ(narrow.lineage.sparse_layers, (std::vector<std::string>{"model.layers.2.mlp.gate_proj.weight"}));
  EXPECT_NO_THROW(model::check_pattern(narrow));
}

TEST(Surgery, TheSavedModelIsTheSameWithItsLineage) {
  const test::TemporaryDirectory directory;
  const auto original = test::tiny_model(test::tiny_config(4, 16, false), 1, at::kFloat);
  const auto sliced = compress::sliced(original, thinned(original.config));
  model::save_model(sliced, directory / "model", {}, base::Json::object());
  const auto again = model::load_weights(directory / "model", at::kFloat, at::kCPU);
  EXPECT_EQ(again.config.blocks, sliced.config.blocks);
  EXPECT_EQ(again.lineage.kept.blocks, sliced.lineage.kept.blocks);
  EXPECT_EQ(again.lineage.kept, sliced.lineage.kept);
  for (std::size_t unit = 0; unit < sliced.units.size(); ++unit)
    EXPECT_TRUE(at::equal(again.units[unit], sliced.units[unit]));
}

}  // namespace
}  // namespace retort
