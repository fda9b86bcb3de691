#include "retort/architecture/counts.h"

#include "configs_for_tests.h"

namespace retort::architecture {
namespace {

using test::small_config;

// The 24-billion teacher and the pruned student of Dickmann et al., CUG 2025.
Config paper_config(int blocks, std::int64_t width) {
  Config config;
  config.vocab_size = 131072;
  config.hidden_size = 5120;
  config.blocks.assign(static_cast<std::size_t>(blocks), {Attention{32, 8, 128}, DenseMlp{width}});
  return config;
}

TEST(Counts, CountsATiedHeadOnce) {
  EXPECT_EQ(num_parameters(small_config(false)) - num_parameters(small_config(true)), 96 * 32);
}

TEST(Counts, AddUpOverUnits) {
  const Config config = small_config();
  const std::int64_t block = 2 * 32 * 8 * (4 + 2) + 3 * 32 * 88 + 2 * 32;
  EXPECT_EQ(parameters_per_unit(config), (std::vector<std::int64_t>{3072, block, block, block, 3072 + 32}));
  EXPECT_EQ(num_parameters(config), 2 * 3072 + 32 + 3 * block);
}

TEST(Counts, CountOnlyWhatABlockHas) {
  EXPECT_EQ(num_parameters(Block{}, 32), 0);
  EXPECT_EQ(num_parameters(Block{std::nullopt, DenseMlp{10}}, 32), 3 * 32 * 10 + 32);
  EXPECT_EQ(num_parameters(Block{Attention{2, 1, 4}, {}}, 32), 2 * 32 * 4 * 3 + 32);
}

TEST(Counts, TellAllExpertsFromThoseThatATokenUses) {
  const Block block{std::nullopt, ExpertsMlp{8, 2, 10}};
  EXPECT_EQ(num_parameters(block, 32), 8 * 3 * 32 * 10 + 8 * 32 + 32);
  EXPECT_EQ(matrix_parameters(block, 32), 2 * 3 * 32 * 10 + 8 * 32);
}

TEST(Counts, GiveTheArithmeticOfThePaper) {
  EXPECT_NEAR(flops_per_token(paper_config(40, 32768), 1024), 46.1e9, 0.05e9);
  EXPECT_NEAR(flops_per_token(paper_config(30, 25600), 1024), 28.3e9, 0.05e9);
  EXPECT_EQ(num_parameters(paper_config(40, 32768)), 23'572'403'200);
}

TEST(Counts, GrowWithTheContextByTheAttentionAlone) {
  const Config config = small_config();
  EXPECT_EQ(flops_per_token(config, 100) - flops_per_token(config, 0), 2.0 * 100 * 32 * 3);
  EXPECT_EQ(flops_per_token(config, 0), 2.0 * (96 * 32 + 3 * (2 * 32 * 8 * 6 + 3 * 32 * 88)));
}

TEST(Counts, SizeTheCacheByKeyAndValueHeads) {
  EXPECT_EQ(kv_cache_bytes_per_token(paper_config(40, 32768), 2), 40 * 2 * 8 * 128 * 2);
  Config config = small_config();
  config.blocks[0].attention.reset();
  EXPECT_EQ(kv_cache_bytes_per_token(config, 4), 2 * 2 * 2 * 8 * 4);
}

TEST(Counts, ACostHasWhatAModelHoldsAndComputes) {
  Config config = small_config();
  const Cost dense = cost_of(config, 100, 3, 2);
  EXPECT_EQ(dense.parameters, num_parameters(config));
  EXPECT_EQ(dense.active_parameters, dense.parameters);
  EXPECT_EQ(dense.bytes, 2 * num_parameters(config) + 3 * 100 * kv_cache_bytes_per_token(config, 2));
  Config windowed = config;
  for (Block& block : windowed.blocks)
    if (block.attention) block.attention->kind.window = 10;
  EXPECT_EQ(kv_cache_bytes(windowed, 2, 100), 10 * kv_cache_bytes_per_token(config, 2));
  EXPECT_EQ(kv_cache_bytes(windowed, 2, 4), 4 * kv_cache_bytes_per_token(config, 2));
  EXPECT_EQ(dense.flops, flops_per_token(config, 100));
  config.blocks[1].mlp = ExpertsMlp{8, 2, 10};
  const Cost experts = cost_of(config, 100, 3, 2);
  EXPECT_EQ(experts.parameters - experts.active_parameters, (8 - 2) * 3 * 32 * 10);
}

}  // namespace
}  // namespace retort::architecture
