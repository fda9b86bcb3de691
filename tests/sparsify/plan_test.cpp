// What a sparsify stage reads and takes, known from the model's configuration.
#include "retort/sparsify/plan.h"

#include <gtest/gtest.h>

#include "retort/architecture/counts.h"
#include "support/models_for_tests.h"

namespace retort {
namespace {

using compress::SparseMethod;
using sparsify::SparsifyOptions;

// One block with MLPs of `width`, one with narrow ones.
architecture::Config config_of(std::int64_t width) {
  auto config = test::tiny_config(2, 64);
  config.hidden_size = 576;
  for (auto& block : config.blocks) block.attention = architecture::Attention{9, 3, 64};
  config.blocks.front().mlp = architecture::DenseMlp{width};
  return config;
}

TEST(CalibrationText, FollowsFromTheWidestLayerThatIsFitted) {
  SparsifyOptions options;
  const auto tokens = [&](std::int64_t width) {
    return sparsify::calibration_tokens_of(config_of(width), options);
  };
  EXPECT_EQ(tokens(1536), 32'768) << "six eighths of it are 16 tokens of each input";
  EXPECT_EQ(tokens(512), 32'768) << "the least";
  EXPECT_EQ(tokens(3072), 2 * 32'768);
  options.blocks = {1};
  EXPECT_EQ(tokens(3072), 32'768) << "the wide MLP stays";
  options.blocks = {};
  options.layers = {"up_proj", "q_proj"};
  EXPECT_EQ(tokens(3072), 32'768) << "the wide layer stays";
  options.layers = {"down_proj"};
  EXPECT_EQ(tokens(3072), 2 * 32'768);
  options.method = SparseMethod::wanda;
  EXPECT_EQ(tokens(3072), 2 * 32'768) << "the polish fits";
  options.polish = false;
  EXPECT_EQ(tokens(3072), 32'768) << "nothing is fitted";
  options.calibration_tokens = 1000;
  EXPECT_EQ(tokens(3072), 1000);
}

TEST(SparsifyWork, CountsTextAndLayers) {
  const auto config = test::tiny_config();
  SparsifyOptions options;
  options.method = SparseMethod::magnitude;
  options.polish = false;
  const auto flops_of = [&] { return sparsify::work_of(config, 1000, options).flops; };
  const double pass = 1000 * architecture::flops_per_token(config, options.sequence_length);
  const auto of_text = sparsify::work_of(config, 1000, options);
  EXPECT_DOUBLE_EQ(of_text.flops, 3 * pass) << "weights are only compared";
  EXPECT_EQ(of_text.fitted_inputs, 0);
  EXPECT_EQ(describe(of_text).find("three quarters"), std::string::npos);

  options.method = SparseMethod::sparse_gpt;
  const auto sweep = flops_of();
  options.polish = true;
  const auto polished = flops_of();
  options.method = SparseMethod::alps;
  const auto all = sparsify::work_of(config, 1000, options);
  EXPECT_GT(sweep, of_text.flops);
  EXPECT_GT(polished, sweep);
  EXPECT_GT(all.flops, polished);
  EXPECT_EQ(all.fitted_inputs, 16);
  EXPECT_EQ(all.layers, 3 * 7);
  EXPECT_SAYS(describe(all),
              "reads 1.0 k tokens of calibration text, three quarters of them for layers of up "
              "to 16 inputs");
  EXPECT_SAYS(describe(all), "in the time of 3 forward passes, and 21 layers become sparse");
  options.blocks = {1};
  EXPECT_DOUBLE_EQ(flops_of() - 3 * pass, (all.flops - 3 * pass) / 3);
}

// Each layer is measured alone on an eighth of the text, and the whole after each of three blocks.
TEST(SparsifyWork, CountsTheChoiceOfAShare) {
  const auto config = test::tiny_config();
  SparsifyOptions options;
  const auto all = sparsify::work_of(config, 1000, options);
  options.share = 0.5;
  const auto half = sparsify::work_of(config, 1000, options);
  EXPECT_EQ(all.tested_tokens, 0);
  EXPECT_EQ(half.tested_tokens, (21 + 3) * 1000 / 8);
  EXPECT_EQ(half.passed_tokens, 2 * all.passed_tokens);
  EXPECT_DOUBLE_EQ(half.flops - 2 * all.flops,
                   3000 * architecture::flops_per_token(config, options.sequence_length));
  EXPECT_SAYS(describe(half), "21 layers are measured one by one, on 3.0 k tokens in all");
}

}  // namespace
}  // namespace retort
