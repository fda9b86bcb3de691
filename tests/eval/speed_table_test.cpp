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

}  // namespace
}  // namespace retort::eval
