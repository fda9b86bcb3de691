// What is concluded of runs whose times are made up.
#include "retort/bench/generation_rates.h"

#include <gtest/gtest.h>

#include "support/message_of.h"

namespace retort::bench {
namespace {

using base::Json;

// Runs that differ by some percent, each `rate` tokens/s.
std::vector<RunMeasures> runs_at(double rate) {
  std::vector<RunMeasures> runs;
  for (int run = 0; run < 10; ++run) {
    const double step = (1 + 0.01 * (run % 3)) / rate;
    runs.push_back(measures_of({.tokens = {{step, 2 * step}}}, true));
  }
  return runs;
}

GenerationRuns at_batch(std::int64_t batch, double whole, double pruned) {
  return {.work = {.batch = batch, .texts = 1, .shortest_prompt = 4, .longest_prompt = 4},
          .by_model = {runs_at(whole), runs_at(pruned)}};
}

GenerationBench made_up(std::vector<GenerationRuns> runs) {
  return {.machine = {},
          .dtype = "fp32",
          .prompts = "",
          .new_tokens = 2,
          .warmup = 1,
          .models = {{.name = "whole", .parameters = 100}, {.name = "pruned", .parameters = 60}},
          .baseline = 0,
          .energy_zones = {},
          .no_energy = "made up",
          .runs = std::move(runs)};
}

TEST(GenerationRates, OfASmallerModelThatIsFasterSaySoWithoutWarning) {
  const Json json = generation_json(made_up({at_batch(1, 100, 150), at_batch(16, 100, 130)}));
  EXPECT_EQ(json.at("format"), 2);
  EXPECT_EQ(json.at("kind"), "generate");
  const Json& pruned = json.at("works").at(0).at("models").at(1);
  EXPECT_EQ(pruned.at("standing"), "faster");
  EXPECT_EQ(pruned.at("verdict"),
            "pruned: 1.500 times the tokens/s of whole at batch 1 (95 %: 1.500 to 1.500, p = 0.0020)");
  EXPECT_NEAR(pruned.at("ratios").at("first_token_seconds").at("ratio").get<double>(), 1 / 1.5, 1e-12);
  const Json& conclusion = json.at("conclusions").at(0);
  EXPECT_EQ(conclusion.at("sentence"), "pruned, with 0.60 of the parameters of whole, is faster everywhere.");
  EXPECT_FALSE(conclusion.at("warns").get<bool>());
}

TEST(GenerationRates, OfASmallerModelThatIsSlowerWarn) {
  const Json json = generation_json(made_up({at_batch(1, 100, 80), at_batch(16, 100, 130)}));
  const Json& conclusion = json.at("conclusions").at(0);
  EXPECT_EQ(conclusion.at("sentence"),
            "pruned, with 0.60 of the parameters of whole, is faster at batch 16, slower at batch 1.");
  EXPECT_TRUE(conclusion.at("warns").get<bool>());
}

TEST(GenerationRates, ThatCannotBeToldApartWarnToo) {
  const Json json = generation_json(made_up({at_batch(1, 100, 100), at_batch(16, 100, 130)}));
  EXPECT_EQ(json.at("works").at(0).at("models").at(1).at("standing"), "not told apart");
  const Json& conclusion = json.at("conclusions").at(0);
  EXPECT_SAYS(conclusion.at("sentence").get<std::string>(), "slower nowhere, not told apart at batch 1");
  EXPECT_TRUE(conclusion.at("warns").get<bool>());
}

TEST(GenerationRates, OfEqualModelsAreToldApartNowhere) {
  auto bench = made_up({at_batch(1, 100, 100)});
  bench.models[1].parameters = bench.models[0].parameters;
  const Json conclusion = generation_json(bench).at("conclusions").at(0);
  EXPECT_EQ(conclusion.at("sentence"), "pruned, as large as whole, is told apart nowhere.");
  EXPECT_FALSE(conclusion.at("warns").get<bool>());
}

TEST(GenerationRates, OfOtherIdsSaySo) {
  auto bench = made_up({at_batch(1, 100, 150)});
  bench.models[1].same_ids = false;
  EXPECT_SAYS(generation_json(bench).at("conclusions").at(0).at("sentence").get<std::string>(),
              "tokens/s are of other amounts of text");
}

TEST(GenerationRates, OfOtherPackingsSaySo) {
  auto bench = made_up({at_batch(1, 100, 150)});
  const auto sentence = [&] {
    return generation_json(bench).at("conclusions").at(0).at("sentence").get<std::string>();
  };
  bench.models[0].packing = bench.models[1].packing = "bf16";
  EXPECT_EQ(sentence().find("packings"), std::string::npos);
  bench.models[1].packing = "fp32";
  EXPECT_SAYS(sentence(),
              "; this compares other packings too: its weights lie in fp32, those of whole in bf16.");
  EXPECT_EQ(generation_json(bench).at("models").at(1).at("packing"), "fp32");
}

TEST(GenerationRates, AreJudgedByWhichModelIsSmaller) {
  auto bench = made_up({at_batch(1, 100, 150)});
  bench.baseline = 1;
  const Json json = generation_json(bench);
  EXPECT_SAYS(json.at("conclusions").at(0).at("sentence").get<std::string>(), "is slower everywhere");
  EXPECT_FALSE(json.at("conclusions").at(0).at("warns").get<bool>());
}

TEST(GenerationRates, OfSeveralLengthsAreNamedByThem) {
  auto longer = at_batch(1, 100, 150);
  longer.work.shortest_prompt = 8;
  longer.work.longest_prompt = 9;
  const Json json = generation_json(made_up({at_batch(1, 100, 150), longer}));
  EXPECT_EQ(json.at("works").at(1).at("place"), "batch 1, prompts of 8 to 9");
}

TEST(GenerationRates, OfFewRunsHaveNoIntervalAndTellNothingApart) {
  auto runs = at_batch(1, 100, 150);
  for (auto& of_model : runs.by_model) of_model.resize(3);
  const Json json = generation_json(made_up({runs}));
  const Json& pruned = json.at("works").at(0).at("models").at(1);
  EXPECT_EQ(pruned.at("standing"), "not told apart");
  EXPECT_SAYS(pruned.at("verdict").get<std::string>(), "too few runs for an interval");
  EXPECT_SAYS(json.at("conclusions").at(0).at("sentence").get<std::string>(), "is not judged");
  EXPECT_FALSE(json.at("conclusions").at(0).at("warns").get<bool>());
}

}  // namespace
}  // namespace retort::bench
