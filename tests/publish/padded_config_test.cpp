// How blocks become alike, family by family, and what is refused.
#include <gtest/gtest.h>

#include "publish/configs_for_tests.h"
#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/publish/padded.h"

namespace retort {
namespace {

std::int64_t added_parameters(const architecture::Config& config) {
  return architecture::num_parameters(publish::padded(config)) - architecture::num_parameters(config);
}

using architecture::Config;
using publish::padded;
using test::config_of;

std::string refusal(const Config& config) {
  const auto message = test::message_of<base::ModelError>([&] { padded(config); });
  EXPECT_SAYS(message, "config.json: ");
  EXPECT_SAYS(message, "; leave the model in its own form, which transformers loads");
  return message;
}

// "w" with a window, "." without; where positions are not told in capitals, or "-".
std::string seen_by_layers(const Config& config) {
  std::string text;
  for (const auto& block : config.blocks) {
    const auto& kind = block.attention->kind;
    text += kind.window ? (kind.rope ? 'w' : 'W') : (kind.rope ? '.' : '-');
  }
  return text;
}

void expect_stock(const Config& config) {
  EXPECT_TRUE(config.uniform());
  EXPECT_FALSE(architecture::written_form(config).is_own);
  auto again = architecture::parse_hf_config(architecture::hf_config_json(config), "config.json");
  again.architecture = config.architecture;
  EXPECT_EQ(again, config);
}

TEST(Padded, LeavesWhatIsAlikeAsItIs) {
  for (const auto* family : architecture::families()) {
    SCOPED_TRACE(family->architecture);
    const auto config = config_of(*family);
    EXPECT_EQ(padded(config), config);
    EXPECT_EQ(added_parameters(config), 0);
  }
}

TEST(Padded, GivesBlocksOfEveryFamilyTheLargestOfEach) {
  for (const auto* family : architecture::families()) {
    SCOPED_TRACE(family->architecture);
    const auto whole = config_of(*family);
    const auto less = test::pruned(whole);
    EXPECT_TRUE(architecture::written_form(less).is_own);
    EXPECT_EQ(padded(less), whole) << "what the first block has of heads, the last of channels";
    EXPECT_EQ(added_parameters(less),
              architecture::num_parameters(whole) - architecture::num_parameters(less));
    expect_stock(padded(less));
  }
}

TEST(Padded, CountsWhatItAdds) {
  auto config = config_of("LlamaForCausalLM");
  test::set_width(config.blocks[1], 20);
  EXPECT_EQ(added_parameters(config), 4 * 3 * 32) << "rows of gate and up, columns of down";
  test::set_groups(config.blocks[2], 3);
  EXPECT_EQ(added_parameters(config), 4 * 3 * 32 + (2 + 2 + 1 + 1) * 4 * 32) << "q, o, k and v";
  config.blocks[3].attention.reset();
  EXPECT_EQ(added_parameters(config), 4 * 3 * 32 + (2 + 2 + 1 + 1) * 4 * 32 + (8 + 8 + 4 + 4) * 4 * 32 + 32)
      << "and a norm";
}

TEST(Padded, KeepsToTheRuleOfLayersThatTheFamilyHas) {
  auto gemma = config_of("Gemma3ForCausalLM", {{"num_hidden_layers", 7}});
  EXPECT_EQ(seen_by_layers(gemma), "wwwww.w");
  gemma.blocks[0].attention.reset();
  gemma.blocks[5].attention.reset();
  EXPECT_EQ(seen_by_layers(padded(gemma)), "wwwww.w");
  auto smollm = config_of("SmolLM3ForCausalLM", {{"num_hidden_layers", 8}});
  EXPECT_EQ(seen_by_layers(smollm), "...-...-");
  smollm.blocks[3].attention.reset();
  smollm.blocks[4].attention.reset();
  EXPECT_EQ(seen_by_layers(padded(smollm)), "...-...-");
}

TEST(Padded, TakesTheKindOfTheBlockBeforeWhereLayersFollowNoRule) {
  auto gemma = config_of("Gemma3ForCausalLM", {{"num_hidden_layers", 7}});
  gemma.blocks.erase(gemma.blocks.begin());
  EXPECT_EQ(seen_by_layers(gemma), "wwww.w");
  gemma.blocks[0].attention.reset();
  gemma.blocks[5].attention.reset();
  EXPECT_EQ(seen_by_layers(padded(gemma)), "wwww..");
  expect_stock(padded(gemma));
  const base::Json said = {
      {"no_rope_layers", {1, 0, 1, 0}}, {"use_sliding_window", true}, {"sliding_window", 8}};
  auto smollm = config_of("SmolLM3ForCausalLM", said);
  EXPECT_EQ(seen_by_layers(smollm), ".W.W");
  smollm.blocks[2].attention.reset();
  EXPECT_EQ(seen_by_layers(padded(smollm)), ".WWW");
  expect_stock(padded(smollm));
}

// Otherwise a file would say a window of no width.
TEST(Padded, SaysWindowsOfLayersThatAllLostTheirAttention) {
  auto gemma = config_of("Gemma2ForCausalLM");
  EXPECT_EQ(seen_by_layers(gemma), "w.w.");
  gemma.blocks[0].attention.reset();
  gemma.blocks[2].attention.reset();
  EXPECT_EQ(seen_by_layers(padded(gemma)), "w.w.");
  expect_stock(padded(gemma));
}

TEST(Padded, GivesMoreHeadsWhereNoClassTakesTheirNumber) {
  for (const char* architecture : {"Gemma2ForCausalLM", "Gemma3ForCausalLM"}) {
    SCOPED_TRACE(architecture);
    const auto whole = config_of(architecture);
    auto fewer = whole;
    for (auto& block : fewer.blocks) test::set_groups(block, 3);
    EXPECT_TRUE(architecture::written_form(fewer).is_own) << "6 heads do not divide 32";
    EXPECT_EQ(padded(fewer), whole);
    fewer.blocks[1].attention.reset();
    EXPECT_EQ(padded(fewer), whole);
  }
}

TEST(Padded, KeepsTheNumberOfHeadsThatAnotherClassTakes) {
  auto llama = config_of("LlamaForCausalLM");
  for (auto& block : llama.blocks) test::set_groups(block, 3);
  test::set_width(llama.blocks[1], 8);
  EXPECT_EQ(padded(llama).blocks.front().attention->num_heads, 6);
  EXPECT_STREQ(architecture::stock_family(padded(llama)).architecture, "MistralForCausalLM");
}

TEST(Padded, GivesHeadsByWhichTheFactorsOfLongropeAreCounted) {
  const base::Json longrope = {{"rope_type", "longrope"}, {"short_factor", {1, 1}}, {"long_factor", {2, 2}}};
  const auto whole = config_of("Phi3ForCausalLM", {{"rope_scaling", longrope}});
  auto fewer = whole;
  for (auto& block : fewer.blocks) test::set_groups(block, 2);
  test::set_groups(fewer.blocks[0], 1);
  EXPECT_EQ(padded(fewer), whole);
}

TEST(Padded, RefusesHeadsThatNoClassTakes) {
  const auto config = config_of("Gemma3ForCausalLM", {{"hidden_size", 31}});
  EXPECT_SAYS(refusal(config),
              "no class of transformers computes what a Gemma3ForCausalLM does and takes 8 to 16 heads "
              "with hidden_size 31");
}

TEST(Padded, RefusesWhereZerosWouldChangeTheMathematics) {
  auto widths = config_of("LlamaForCausalLM");
  widths.blocks[2].attention->head_dim = 2;
  EXPECT_SAYS(refusal(widths), "heads of block 2 have 2 channels, expected 4 as in the blocks before it");
  auto groups = config_of("LlamaForCausalLM");
  groups.blocks[1].attention->num_heads = 4;
  EXPECT_SAYS(refusal(groups), "block 1 has 1 query heads for each KV group, expected 2");
  for (const char* architecture : {"Olmo2ForCausalLM", "Olmo3ForCausalLM"}) {
    auto across = config_of(architecture);
    test::set_groups(across.blocks[3], 3);
    EXPECT_SAYS(refusal(across),
                "block 3 has 3 KV groups, expected 4, because its queries and keys are normalised across");
    for (auto& block : across.blocks) test::set_groups(block, 3);
    EXPECT_EQ(padded(across), across) << "as many in all of them";
  }
}

TEST(Padded, RefusesNormsOfZerosWithoutEps) {
  const auto without_eps = [](const char* architecture) {
    auto config = config_of(architecture);
    config.rms_norm_eps = 0;
    return config;
  };
  auto llama = without_eps("LlamaForCausalLM");
  llama.blocks[1].attention.reset();
  EXPECT_NO_THROW(padded(llama)) << "zeros pass no norm";
  auto qwen = without_eps("Qwen3ForCausalLM");
  qwen.blocks[1].mlp = std::monostate{};
  EXPECT_NO_THROW(padded(qwen));
  test::set_groups(qwen.blocks[2], 3);
  EXPECT_SAYS(refusal(qwen), "rms_norm_eps is 0, expected more");
  for (const char* architecture : {"Gemma3ForCausalLM", "Olmo2ForCausalLM"}) {
    auto after = without_eps(architecture);
    after.blocks[1].mlp = std::monostate{};
    EXPECT_SAYS(refusal(after), "rms_norm_eps is 0, expected more");
  }
}

TEST(Padded, RefusesModelsWhoseHalvesHaveNoSize) {
  auto attention = config_of("LlamaForCausalLM"), mlp = attention;
  for (auto& block : attention.blocks) block.attention.reset();
  EXPECT_SAYS(refusal(attention), "no block has attention, expected one");
  for (auto& block : mlp.blocks) block.mlp = std::monostate{};
  EXPECT_SAYS(refusal(mlp), "no block has an MLP, expected one");
}

}  // namespace
}  // namespace retort
