// Which products a model has, and that what is timed is a product.
#include "retort/bench/products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "retort/architecture/counts.h"
#include "retort/bench/kernels.h"

namespace retort::bench {
namespace {

architecture::Config small_config() {
  architecture::Config config;
  config.vocab_size = 50;
  config.hidden_size = 16;
  config.max_position_embeddings = 64;
  const architecture::Attention heads{4, 2, 4};
  config.blocks = {{heads, architecture::DenseMlp{24}},
                   {heads, architecture::DenseMlp{20}},
                   {heads, {}},
                   {{}, architecture::DenseMlp{24}}};
  return config;
}

TEST(Products, OfBlocksThatAreAlikeAreListedOnce) {
  const auto products = products_of(small_config(), 1000);
  struct Expected {
    const char* name;
    Linear weight;
    std::int64_t blocks, tokens;
  };
  const Expected expected[] = {{"qkv", {32, 16}, 3, 1000},     {"o", {16, 16}, 3, 1000},
                               {"gate_up", {48, 16}, 2, 1000}, {"down", {16, 24}, 2, 1000},
                               {"gate_up", {40, 16}, 1, 1000}, {"down", {16, 20}, 1, 1000},
                               {"head", {50, 16}, 0, 256}};
  ASSERT_EQ(products.size(), std::size(expected));
  for (std::size_t i = 0; i < products.size(); ++i) {
    EXPECT_EQ(products[i].name, expected[i].name) << i;
    EXPECT_EQ(products[i].weight, expected[i].weight) << i;
    EXPECT_EQ(products[i].blocks, expected[i].blocks) << i;
    EXPECT_EQ(products[i].tokens, expected[i].tokens) << i;
  }
}

// The counts of a whole model come from another place.
TEST(Products, HaveTheOperationsThatAModelHas) {
  const auto config = small_config();
  double sum = 0;
  for (const auto& product : products_of(config, 1))
    sum += flops(product.weight, 1) * static_cast<double>(std::max<std::int64_t>(1, product.blocks));
  EXPECT_EQ(sum, architecture::flops_per_token(config, 0));
}

TEST(Products, OperandsFitTheLargestWeight) {
  const std::vector<Linear> weights = {{32, 16}, {8, 40}};
  // A weight of 512 and its gradient in float32; 10 inputs of 40, 10 gradients of 32; 512 of a result.
  EXPECT_EQ(Operands::bytes(weights, 10, 2), 2 * (512 + 400 + 320 + 512) + 4 * 512);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const Operands operands(weights, 10, dtype, at::kCPU);
    for (const auto& weight : weights)
      for (const auto pass : kPasses) operands.run(weight, pass);
  }
}

// How fast a machine is cannot be asserted.
TEST(Products, AreTimedInAllPasses) {
  const NamedLinear product{"down", {24, 16}, 1, 8};
  const auto rates = measure_product(product, at::kFloat, at::kCPU, {.seconds = 0, .least_rounds = 1});
  ASSERT_EQ(rates.size(), 3U);
  EXPECT_EQ(rates[0].pass, Pass::forward);
  EXPECT_EQ(rates[2].pass, Pass::weight_gradient);
  for (const auto& rate : rates) {
    EXPECT_TRUE(std::isfinite(rate.seconds));
    EXPECT_DOUBLE_EQ(rate.flops_per_second() * rate.seconds, 2.0 * 24 * 16 * 8);
  }
}

TEST(InTurn, CallsEachWorkOnceMoreThanThereAreRounds) {
  int first = 0, second = 0;
  std::vector<double> shares;
  std::vector<Timed> works = {{[&] { ++first; }}, {[&] { EXPECT_EQ(++second, first); }}};
  time_in_turn(works, {.seconds = 1e9, .least_rounds = 2, .most_rounds = 4}, at::kCPU,
               [&](double share) { shares.push_back(share); });
  EXPECT_EQ(first, 5);
  EXPECT_EQ(second, 5);
  ASSERT_EQ(shares.size(), 4U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  time_in_turn(works, {.seconds = 0, .least_rounds = 2}, at::kCPU);
  EXPECT_EQ(first, 8);
}

TEST(Kernels, AreAllTimedOnAModelThatHasThem) {
  const auto names_of = [](const architecture::Config& config, at::ScalarType dtype) {
    std::string names;
    for (const auto& rate :
         measure_kernels(config, 32, dtype, at::kCPU, {.seconds = 0, .least_rounds = 1}, {})) {
      names += rate.name + " ";
      EXPECT_TRUE(std::isfinite(rate.seconds)) << rate.name;
      EXPECT_GT(rate.work.bytes + rate.work.flops, 0) << rate.name;
    }
    return names;
  };
  const std::string all =
      "rms_norm rms_norm_backward swiglu swiglu_backward rotary attention attention_backward "
      "paged_attention cross_entropy kl_divergence adamw decode_product ";
  for (const auto dtype : {at::kFloat, at::kBFloat16}) EXPECT_EQ(names_of(small_config(), dtype), all);
  auto without = small_config();
  without.blocks = {{}};
  EXPECT_EQ(names_of(without, at::kFloat),
            "rms_norm rms_norm_backward cross_entropy kl_divergence adamw decode_product ");
}

}  // namespace
}  // namespace retort::bench
