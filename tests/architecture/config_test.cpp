#include "retort/architecture/config.h"

#include <cmath>
#include <limits>

#include "configs_for_tests.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

using test::message_of;
using test::small_config;

std::string refusal(const Config& config) {
  return message_of<base::ModelError>([&] { validate(config, "here"); });
}

TEST(Config, IsUniformWhenAllBlocksAreAlike) {
  Config config = small_config();
  EXPECT_TRUE(config.uniform());
  validate(config, "here");
  config.blocks[1].attention->kind.window = 16;
  config.blocks[2].attention->kind.rope.reset();
  EXPECT_TRUE(config.uniform()) << "sizes count, not what layers compute";
  config.blocks[1].mlp = DenseMlp{80};
  EXPECT_FALSE(config.uniform());
  config.blocks.assign(3, {std::nullopt, DenseMlp{80}});
  EXPECT_FALSE(config.uniform());
  config.blocks.clear();
  EXPECT_FALSE(config.uniform());
}

TEST(Config, AcceptsBlocksOfDifferentShapes) {
  Config config = small_config();
  config.blocks[0].attention.reset();
  config.blocks[1].mlp = std::monostate{};
  config.blocks[2] = {Attention{8, 4, 2}, ExpertsMlp{4, 2, 8}};
  EXPECT_NO_THROW(validate(config, "here"));
}

TEST(Config, RefusesShapesThatCannotBe) {
  const auto with = [](auto change) {
    Config config = small_config();
    change(config);
    return refusal(config);
  };
  EXPECT_SAYS(with([](Config& c) { c.vocab_size = 0; }), "vocab_size is 0");
  EXPECT_SAYS(with([](Config& c) { c.hidden_size = -1; }), "hidden_size is -1");
  EXPECT_SAYS(with([](Config& c) { c.hidden_size = std::int64_t{1} << 62; }), "hidden_size");
  EXPECT_SAYS(with([](Config& c) { c.max_position_embeddings = 0; }), "max_position_embeddings");
  EXPECT_SAYS(with([](Config& c) { c.blocks.clear(); }), "num_hidden_layers is 0");
  EXPECT_SAYS(with([](Config& c) {
                c.blocks[1].attention = Attention{0, 1, 8};
              }),
              "num_attention_heads is 0");
  EXPECT_SAYS(with([](Config& c) { c.blocks[1].attention = Attention{4, 3, 8}; }), "divisor");
  EXPECT_SAYS(with([](Config& c) { c.blocks[1].attention = Attention{4, 2, 7}; }), "even");
  EXPECT_SAYS(with([](Config& c) { c.blocks[1].mlp = DenseMlp{0}; }), "intermediate_size is 0");
  EXPECT_SAYS(with([](Config& c) { c.blocks[1].mlp = ExpertsMlp{2, 3, 8}; }), "experts_per_token is 3");
  EXPECT_SAYS(with([](Config& c) { c.eos_token_ids = {96}; }), "eos_token_id is 96");
  EXPECT_SAYS(with([](Config& c) { c.bos_token_ids = {-1}; }), "bos_token_id is -1");
  EXPECT_SAYS(with([](Config& c) { c.pad_token_id = 100; }), "pad_token_id is 100");
}

TEST(Config, RefusesNumbersThatAreNone) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
    Config config = small_config();
    config.ropes.front().theta = bad;
    EXPECT_SAYS(refusal(config), "rope_theta");
    config = small_config();
    config.rms_norm_eps = bad;
    EXPECT_SAYS(refusal(config), "rms_norm_eps");
    config = small_config();
    config.initializer_range = bad;
    EXPECT_SAYS(refusal(config), "initializer_range");
  }
}

TEST(Config, RefusesMoreParametersThanAnyMachineHolds) {
  Config config = small_config();
  config.hidden_size = std::int64_t{1} << 18;
  config.blocks.assign(8192, {Attention{8192, 8192, 8192}, ExpertsMlp{8192, 1, std::int64_t{1} << 22}});
  EXPECT_SAYS(refusal(config), "parameters");
  config.blocks.assign(1, {Attention{8192, 8192, 8192}, DenseMlp{8}});
  EXPECT_SAYS(refusal(config), "parameters");
}

}  // namespace
}  // namespace retort::architecture
