#include "retort/eval/speed_table.h"

#include <gtest/gtest.h>

#include "retort/architecture/counts.h"

namespace retort::eval {
namespace {

architecture::Config model_of(std::vector<architecture::Block> blocks) {
  architecture::Config config;
  config.vocab_size = 64;
  config.hidden_size = 32;
  config.ropes.front().theta = 10000;
  config.rms_norm_eps = 1e-5;
  config.max_position_embeddings = 64;
  config.blocks = std::move(blocks);
  return config;
}

// No time is tested: only that a model is the sum of its parts, and that equal parts are one.
TEST(SpeedTable, AddsUpPartsThatModelsShare) {
  const architecture::Block whole{architecture::Attention{4, 2, 8}, architecture::DenseMlp{96}},
      narrow{architecture::Attention{2, 1, 8}, architecture::DenseMlp{32}},
      half{std::nullopt, architecture::DenseMlp{96}};
  const std::vector models{model_of({whole, whole, whole}), model_of({whole, narrow}),
                           model_of({narrow, half})};
  const auto table = SpeedTable::measured(models, {.context = 32, .batch = 2, .rounds = 2});
  const auto json = table.to_json();
  ASSERT_EQ(json.at("seconds").size(), 4U) << json.dump();
  const auto of = [&](const char* name) { return json.at("seconds").at(name).get<double>(); };
  const double head = of("head 64 x 32"), w = of("block of 32, 4/2 heads of 8, MLP of 96"),
               n = of("block of 32, 2/1 heads of 8, MLP of 32"), h = of("block of 32, MLP of 96");
  for (const double part : {head, w, n, h}) EXPECT_GT(part, 0);
  EXPECT_DOUBLE_EQ(table.seconds(models[0]), head + 3 * w);
  EXPECT_DOUBLE_EQ(table.seconds(models[1]), head + w + n);
  EXPECT_DOUBLE_EQ(table.seconds(models[2]), head + n + h);
  const auto cost = table.cost(models[1]);
  EXPECT_EQ(cost.seconds, table.seconds(models[1]));
  EXPECT_EQ(cost.counted.parameters, architecture::num_parameters(models[1]));
  EXPECT_EQ(cost.counted.bytes,
            2 * (cost.counted.parameters + 2 * 32 * architecture::kv_cache_bytes_per_token(models[1], 1)));
  EXPECT_EQ(to_json(cost).at("bytes"), cost.counted.bytes);
  EXPECT_EQ(json.at("hash").get<std::string>().size(), 32U);
}

// Widths that 64 divides run four times as fast there, whatever they do here.
TEST(SpeedTable, OfAnotherMachineGoesByItsRates) {
  OtherMachine machine{.name = "Made Up 9000", .dtype = c10::ScalarType::BFloat16, .rates = {}};
  machine.rates.square_flops = 1e12;
  for (std::int64_t multiple = 1; multiple <= 64; multiple *= 2) {
    machine.rates.mlp_width.multiples.push_back({multiple, multiple < 64 ? 1e9 : 4e9, {}});
    machine.rates.hidden_size.multiples.push_back({multiple, 2e9, {}});
  }
  const architecture::Block wide{architecture::Attention{4, 2, 8}, architecture::DenseMlp{128}},
      narrower{architecture::Attention{4, 2, 8}, architecture::DenseMlp{96}};
  const std::vector models{model_of({wide}), model_of({narrower})};
  const auto table = SpeedTable::expected(models, {.context = 16, .batch = 2}, machine);
  const double tokens = 32;
  const auto seconds = [&](double mlp_width, double mlp_rate) {
    const double heads = 2 * (32 * 4 * 8 * 2 + 32 * 2 * 8 * 2);  // q, o, k and v
    const double attention = architecture::attention_flops_per_token(models[0], 16);
    const double head = 2 * 32 * 64, mlp = 2 * 3 * 32 * mlp_width;
    return tokens * ((heads + attention + head) / 2e9 + mlp / mlp_rate);
  };
  EXPECT_NEAR(table.seconds(models[0]), seconds(128, 4e9), 1e-15);
  EXPECT_NEAR(table.seconds(models[1]), seconds(96, 1e9), 1e-15);
  EXPECT_LT(table.seconds(models[0]), table.seconds(models[1]));
  EXPECT_EQ(table.to_json().at("conditions").at("rates_of"), "Made Up 9000");
  EXPECT_EQ(table.to_json().at("conditions").at("dtype"), "bf16");
}

}  // namespace
}  // namespace retort::eval
