// Models of every family without some of their parts: what is sliced away computes what is masked, and
// tests/eval/transformers_loads_pruned_test.py loads what this program saves.
#include <gtest/gtest.h>

#include "prune/saved_cases.h"
#include "retort/architecture/families.h"
#include "retort/base/error.h"
#include "retort/compress/readers.h"
#include "retort/compress/surgery.h"
#include "support/message_of.h"
#include "support/oracle_case.h"

namespace retort {
namespace {

using architecture::Kept;

struct Candidate {
  std::string name;
  Kept kept;
};

std::vector<std::int64_t> every_other(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 1; i < count; i += 2) numbers.push_back(i);
  return numbers;
}

// Whether queries and keys of a head stay what they are without the others.
bool heads_stand_alone(const architecture::Config& config) {
  return config.blocks.front().attention->kind.norm != architecture::QueryKeyNorm::across_heads;
}

bool every_block_has_groups(const architecture::Config& config) {
  return std::all_of(config.blocks.begin(), config.blocks.end(),
                     [](const auto& block) { return architecture::kv_groups(block) > 1; });
}

std::vector<Candidate> candidates_of(const architecture::Config& config) {
  const auto whole = architecture::whole(config);
  const auto groups = architecture::kv_groups(config.blocks[1]);
  const auto channels = every_other(architecture::mlp_width(config.blocks[0]));
  std::vector<Candidate> list = {{"no_block", architecture::without_block(whole, 1)},
                                 {"no_attention", architecture::with_kv_groups(whole, 1, {})},
                                 {"no_mlp", architecture::with_channels(whole, 0, {})},
                                 {"narrower", architecture::with_channels(whole, 0, channels)}};
  if (groups > 1 && heads_stand_alone(config))
    list.push_back({"fewer_heads", architecture::with_kv_groups(whole, 1, {groups - 1})});
  auto uniform = whole;
  for (const auto& block : whole.blocks)
    uniform = architecture::with_channels(uniform, block.number, channels);
  list.push_back({"uniform", uniform});
  if (heads_stand_alone(config) && every_block_has_groups(config)) {
    for (const auto& block : whole.blocks) uniform = architecture::with_kv_groups(uniform, block.number, {0});
    list.push_back({"uniform_heads", uniform});
  }
  auto hidden = whole;
  hidden.hidden = every_other(config.hidden_size);
  list.push_back({"hidden", hidden});
  return list;
}

// The factors of longrope are counted by hidden_size and a number of heads, which has to give their width.
bool may_lose_hidden_features(const architecture::Config& config, std::int64_t left) {
  if (config.embedding_factor != 1) return false;
  const auto width = config.blocks.front().attention->head_dim;
  return config.ropes.front().kind != architecture::Rope::Kind::longrope ||
         left / std::max<std::int64_t>(1, left / width) == width;
}

at::Tensor mask_of(const std::vector<std::int64_t>& kept, std::int64_t count) {
  auto mask = at::zeros({count}, at::kDouble);
  for (const auto number : kept) mask[number] = 1;
  return mask;
}

// The whole model with zeros in place of what is gone.
at::Tensor masked_logits(const model::Weights& weights, const calibrate::Batch& batch, const Kept& kept) {
  const auto& config = weights.config;
  const auto hidden_mask_D = mask_of(kept.hidden, config.hidden_size);
  auto hidden_ND = model::embedded(weights, batch.ids_N) * hidden_mask_D;
  for (std::int64_t block = 0; block < std::ssize(config.blocks); ++block) {
    const auto* stays = kept.find(block);
    if (!stays) continue;
    auto views = model::weights_of_block(weights, block);
    if (stays->kv_groups.empty()) compress::skip(views, architecture::Half::attention);
    if (stays->channels.empty()) compress::skip(views, architecture::Half::mlp);
    const model::BlockHooks hooks{
        .channel_mask_I =
            mask_of(stays->channels, architecture::mlp_width(config.blocks[static_cast<std::size_t>(block)])),
        .head_mask_Y = mask_of(compress::kept_inputs(config, kept, architecture::Half::attention, block),
                               compress::inputs_of(config, architecture::Half::attention, block)),
        .hidden_mask_D = hidden_mask_D};
    hidden_ND = model::block_forward(views, config.rms_norm_eps, hidden_ND, batch.layout, nullptr, &hooks);
  }
  const auto& head = weights.units[static_cast<std::size_t>(weights.layout.head_unit())];
  return model::logits(model::head_weights(weights.layout, head), config.rms_norm_eps,
                       model::logit_rule(config), hidden_ND);
}

// The second document is longer than what each model was made for, so that positions stretch.
TEST(PrunedFamilies, SlicedComputesWhatMaskedDoes) {
  for (const auto& c : test::family_cases()) {
    const auto weights = model::load_weights(c.directory, at::kDouble, at::kCPU);
    const auto sources = test::documents(weights.config.vocab_size, {24, 101});
    const auto batch = calibrate::calibration_batches(sources, weights.config, at::kCPU).front();
    for (const auto& [name, kept] : candidates_of(weights.config)) {
      SCOPED_TRACE(c.name + " " + name);
      const auto sliced = compress::sliced(weights, kept);
      const auto sliced_batch = calibrate::calibration_batches(sources, sliced.config, at::kCPU).front();
      test::expect_close(test::plain_logits(sliced, sliced_batch), masked_logits(weights, batch, kept),
                         test::kThroughFloatTables);
    }
  }
}

TEST(PrunedFamilies, EachIsWrittenForTransformersToLoad) {
  const auto directory = test::saved("families");
  std::size_t written = 0;
  for (const auto& c : test::family_cases()) {
    if (!c.name.ends_with("_0") && !c.name.ends_with("_3")) continue;
    auto weights = model::load_weights(c.directory, at::kFloat, at::kCPU);
    weights.file_dtype = io::Dtype::f32;
    for (const auto& [name, kept] : candidates_of(weights.config)) {
      SCOPED_TRACE(c.name + " " + name);
      const auto sliced = compress::sliced(weights, kept);
      if (name != "hidden" || may_lose_hidden_features(weights.config, sliced.config.hidden_size)) {
        test::save_case(sliced, directory / (c.name + "_" + name));
        EXPECT_EQ(architecture::read_config(directory / (c.name + "_" + name) / "model").blocks,
                  sliced.config.blocks);
        ++written;
      } else {
        EXPECT_SAYS(test::message_of<base::ModelError>([&] { architecture::written_form(sliced.config); }),
                    "leave heads or hidden features as they are");
      }
    }
  }
  EXPECT_GE(written, 120U);
}

}  // namespace
}  // namespace retort
