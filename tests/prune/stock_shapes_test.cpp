// What transformers makes of pruned models: this program saves them, and
// tests/eval/transformers_loads_pruned_test.py loads them.
#include <gtest/gtest.h>

#include <algorithm>

#include "prune/saved_cases.h"
#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/compress/surgery.h"
#include "retort/prune/model_space.h"
#include "retort/prune/target.h"
#include "support/models_for_tests.h"
#include "support/stepwise_options.h"

namespace retort {
namespace {

architecture::Config small_model(bool tied) {
  auto config = test::tiny_config(2, 16, tied);
  config.hidden_size = 24;
  config.rms_norm_eps = 1e-5;
  config.ropes.front().theta = 5e5;
  for (auto& block : config.blocks) block.attention = architecture::Attention{6, 3, 8};
  return config;
}

// One candidate for each shape that blocks which stay alike may have, the whole model first.
std::vector<architecture::Kept> reachable(const architecture::Config& input) {
  auto options = test::stepwise_options();
  options.hidden = true;
  options.width_multiple = 8;
  const prune::ModelSpace model(input, options, architecture::num_parameters(input) - 1, {});
  const auto& space = model.space();
  std::vector<search::State> states = {space.whole()};
  std::vector<architecture::Kept> found = {architecture::whole(input)};
  std::vector<architecture::Config> shapes = {input};
  for (std::size_t at = 0; at < states.size(); ++at)
    for (std::size_t unit = 0; unit < space.units.size(); ++unit) {
      auto next = states[at];
      if (++next[unit] > space.highest(unit) || !space.admits(next)) continue;
      auto candidate = model.candidate(next);
      auto shape = architecture::config_of(input, candidate);
      if (std::ranges::find(shapes, shape) != shapes.end()) continue;
      shapes.push_back(std::move(shape));
      states.push_back(std::move(next));
      found.push_back(std::move(candidate));
    }
  return found;
}

TEST(StockShapes, EveryOneThatUniformPruningReachesIsWrittenForTransformersToLoad) {
  const auto directory = test::saved("uniform");
  std::size_t number = 0;
  for (const bool tied : {true, false}) {
    const auto input = small_model(tied);
    const auto weights = test::tiny_model(input, 3, at::kFloat);
    const auto candidates = reachable(input);
    EXPECT_EQ(candidates.size(), 2U * 3 * 2 * 3) << "blocks, KV groups, channels, hidden features";
    for (const auto& candidate : candidates)
      test::save_case(compress::sliced(weights, candidate), directory / std::to_string(number++));
  }
}

TEST(StockShapes, BlocksThatDifferAreWrittenWithTheCodeThatLoadsThem) {
  const auto directory = test::saved("own");
  const auto input = small_model(true);
  const auto weights = test::tiny_model(input, 3, at::kFloat);
  const auto whole = architecture::whole(input);
  const auto save = [&](const architecture::Kept& candidate, const char* name) {
    test::save_case(compress::sliced(weights, candidate), directory / name);
  };
  save(architecture::with_kv_groups(whole, 1, {}), "no_attention");
  save(architecture::with_channels(whole, 0, {}), "no_mlp");
  save(architecture::with_kv_groups(whole, 0, {1}), "fewer_heads");
  save(architecture::with_channels(whole, 1, {0, 1, 2, 3, 4, 5, 6, 7}), "narrower");
  save(architecture::with_channels(architecture::with_kv_groups(whole, 0, {}), 1, {}), "halves");
}

// The class of transformers wants hidden_size to be a multiple of the heads; the own form does not.
TEST(StockShapes, AGemmaLosesHeadsThatItsClassWouldMiss) {
  const base::Json shape = {{"architectures", {"Gemma3ForCausalLM"}},
                            {"model_type", "gemma3_text"},
                            {"vocab_size", 40},
                            {"hidden_size", 64},
                            {"intermediate_size", 32},
                            {"num_hidden_layers", 2},
                            {"num_attention_heads", 8},
                            {"num_key_value_heads", 4},
                            {"head_dim", 8},
                            {"query_pre_attn_scalar", 8},
                            {"sliding_window", 16},
                            {"sliding_window_pattern", 2},
                            {"max_position_embeddings", 64},
                            {"initializer_range", 0.2}};
  const auto input = architecture::parse_hf_config(shape.dump(), "config.json");
  const auto options = test::stepwise_options();
  EXPECT_TRUE(options.heads);
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { prune::require_removable(input, options); }),
              "set heads: false, or units: per_layer");
  auto by_layer = options;
  by_layer.units = prune::Units::per_layer;
  EXPECT_NO_THROW(prune::require_removable(input, by_layer));

  const auto weights = test::tiny_model(input, 3, at::kFloat);
  const auto one_less = architecture::with_kv_groups(architecture::whole(input), 0, {0, 1, 3});
  const auto directory = test::saved("gemma3");
  test::save_case(compress::sliced(weights, one_less), directory / "one_layer");
  test::save_case(compress::sliced(weights, architecture::with_kv_groups(one_less, 1, {1, 2, 3})),
                  directory / "all_layers");
}

}  // namespace
}  // namespace retort
