// Pruned models of every family, padded until their blocks are alike: they compute the same here, and
// tests/eval/transformers_loads_pruned_test.py loads what this program saves.
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "prune/saved_cases.h"
#include "retort/architecture/families.h"
#include "retort/compress/surgery.h"
#include "support/oracle_case.h"
#include "support/padded_model.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using architecture::Kept;

bool may_lose_heads(const architecture::Config& config, std::int64_t block) {
  const auto& attention = *config.blocks[static_cast<std::size_t>(block)].attention;
  return attention.num_kv_heads > 1 && attention.kind.norm != architecture::QueryKeyNorm::across_heads;
}

Kept without_first_group(const architecture::Config& config, Kept kept, std::int64_t block) {
  if (!may_lose_heads(config, block)) return kept;
  auto groups =
      architecture::counted(architecture::kv_groups(config.blocks[static_cast<std::size_t>(block)]));
  groups.erase(groups.begin());
  return architecture::with_kv_groups(kept, block, groups);
}

Kept narrower(const architecture::Config& config, const Kept& kept, std::int64_t block) {
  auto channels =
      architecture::counted(architecture::mlp_width(config.blocks[static_cast<std::size_t>(block)]));
  std::erase_if(channels, [](std::int64_t channel) { return channel % 3 == 0; });
  return architecture::with_channels(kept, block, channels);
}

// Each block has lost something else.
Kept halves(const architecture::Config& config) {
  auto kept = architecture::with_channels(architecture::whole(config), 0, {});
  kept = architecture::with_kv_groups(kept, 1, {});
  return narrower(config, without_first_group(config, kept, 2), 2);
}

// All have lost a group, so that heads may be of a number that no class takes, and layers follow no rule.
Kept one_group_less(const architecture::Config& config) {
  auto kept = architecture::without_block(architecture::whole(config), 1);
  for (const auto number : kept.numbers()) kept = without_first_group(config, kept, number);
  return architecture::with_channels(kept, 0, {});
}

// The logits beside the padded model are those of the pruned one.
void save(const model::Weights& weights, const Kept& kept, const std::filesystem::path& directory) {
  const test::TemporaryDirectory pruned;
  model::save_model(compress::sliced(weights, kept), pruned.path() / "model", {}, {});
  const auto before = model::load_weights(pruned.path() / "model", at::kFloat, at::kCPU);
  EXPECT_TRUE(architecture::written_form(before.config).is_own);
  std::filesystem::create_directories(directory);
  test::write_padded(pruned.path() / "model", directory / "model");
  test::save_logits(before, directory);

  const auto sources = test::documents(weights.config.vocab_size, {24, 101});
  const auto logits_of = [&](const std::filesystem::path& model) {
    const auto loaded = model::load_weights(model, at::kDouble, at::kCPU);
    return test::plain_logits(loaded,
                              calibrate::calibration_batches(sources, loaded.config, at::kCPU).front());
  };
  test::expect_close(logits_of(directory / "model"), logits_of(pruned.path() / "model"),
                     test::tolerance(at::kDouble));
}

// Six heads in two blocks and four in one: the class takes four or eight with this hidden size, but not six.
void save_gemma(const std::filesystem::path& directory) {
  const base::Json shape = {{"architectures", {"Gemma2ForCausalLM"}},
                            {"model_type", "gemma2"},
                            {"vocab_size", 40},
                            {"hidden_size", 40},
                            {"intermediate_size", 32},
                            {"num_hidden_layers", 4},
                            {"num_attention_heads", 8},
                            {"num_key_value_heads", 4},
                            {"head_dim", 8},
                            {"query_pre_attn_scalar", 8},
                            {"sliding_window", 16},
                            {"max_position_embeddings", 128},
                            {"initializer_range", 0.2}};
  const auto config = architecture::parse_hf_config(shape.dump(), "config.json");
  auto kept = architecture::with_kv_groups(architecture::whole(config), 0, {0, 1, 3});
  kept = architecture::with_kv_groups(kept, 1, {1, 2, 3});
  kept = architecture::with_kv_groups(kept, 2, {0, 2});
  kept = architecture::with_kv_groups(kept, 3, {});
  save(test::tiny_model(config, 3, at::kFloat), kept, directory);
  const auto heads = architecture::read_config(directory / "model").blocks[3].attention->num_heads;
  EXPECT_EQ(heads, 8) << "the next number that divides 40";
}

TEST(PaddedFamilies, ComputeTheSameAndAreWrittenForTransformersToLoad) {
  const auto directory = test::saved("padded");
  std::size_t written = 0;
  for (const auto& c : test::family_cases()) {
    SCOPED_TRACE(c.name);
    auto weights = model::load_weights(c.directory, at::kFloat, at::kCPU);
    weights.file_dtype = io::Dtype::f32;
    save(weights, halves(weights.config), directory / (c.name + "_halves"));
    save(weights, one_group_less(weights.config), directory / (c.name + "_one_group_less"));
    written += 2;
  }
  save_gemma(directory / "gemma2_heads");
  EXPECT_EQ(written, 2 * test::kDrawsOfFamily * architecture::families().size());
}

}  // namespace
}  // namespace retort
