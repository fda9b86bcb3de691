// Rates of this machine, and a recipe that takes its sizes from them.  No case says how fast a machine is.
#include <gtest/gtest.h>

#include "cli/refusal.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

class Bench : public testing::Test {
 protected:
  void SetUp() override { copy_model(project_, "m"); }
  base::Json file(const std::string& name) const {
    return base::Json::parse(files_below(project_.path()).at(name));
  }
  TinyProject project_;
};

const std::vector<std::string> kQuick = {"--tokens", "16", "--seconds", "0"};

std::vector<std::string> quick(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), kQuick.begin(), kQuick.end());
  return arguments;
}

TEST_F(Bench, WritesSizesThatARecipeTakes) {
  const Finished measured = project_.run(quick({"bench", "gemm", "m", "--dtype", "fp32"}));
  ASSERT_EQ(measured.code, 0) << measured.err;
  for (const char* part :
       {"GB/s reading", "GFLOP/s in fp32", "gate_up", "weight gradient", "fp32: MLP width near",
        "fp32: hidden size near", "advised: ", "attention by head_dim"})
    EXPECT_SAYS(measured.out, part);
  EXPECT_SAYS(measured.err, "written: sizing.json");
  const auto sizing = file("sizing.json");
  EXPECT_EQ(sizing.at("kind"), "gemm");
  EXPECT_EQ(sizing.at("model").at("name"), "m");

  const auto advised = sizing.at("dtypes").at("fp32").at("mlp_width").at("advised_multiple").get<int>();
  project_.write_recipe(
      {"{name: small, kind: prune, from: ./m, target: {parameters: 97%}, sizing: "
       "sizing.json, data: [text], calibration_tokens: 2k, sequence_length: 64, search: {tolerance: 20%}}"});
  const Finished dry = project_.run_recipe({"--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_SAYS(dry.err, "stage 'small': sizing.json: advises multiples of " + std::to_string(advised) +
                           "; width_multiple is 32.");
  EXPECT_SAYS(dry.out, " by the rate in sizing.json.");
  const Finished other = project_.run_recipe({"--dry-run", "--dtype", "bf16"});
  EXPECT_EQ(other.code, 2);
  EXPECT_SAYS(other.err, "expected rates in bf16");
  EXPECT_SAYS(project_.run_recipe({"--print-recipe"}).out, "sizing: \"sizing.json\"");
}

TEST_F(Bench, RunKeepsTheWidthThatItBeganWith) {
  ASSERT_EQ(project_.run(quick({"bench", "gemm", "m", "--dtype", "fp32", "-q"})).code, 0);
  project_.write_recipe(
      {"{name: small, kind: prune, units: uniform, blocks: false, from: ./m, target: {parameters: 97.5%}, "
       "sizing: sizing.json, data: [text], calibration_tokens: 2k, sequence_length: 64}"});
  const Finished finished = project_.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(file("run/recipe.json").at("stages").at("small").at("width_multiple"), 32);
  EXPECT_EQ(project_.run_recipe().code, 0);
  std::filesystem::remove(project_.path("sizing.json"));
  const Finished without = project_.run_recipe();
  EXPECT_EQ(without.code, 2);
  EXPECT_SAYS(without.err, "sizing.json");
}

TEST_F(Bench, RatesOfAnotherMachineGiveItsTimes) {
  ASSERT_EQ(project_.run(quick({"bench", "gemm", "m", "--dtype", "fp32", "-q"})).code, 0);
  auto sizing = file("sizing.json");
  sizing["machine"]["processor"] = "Made Up 9000";
  project_.write("sizing.json", sizing.dump());
  project_.write_recipe(
      {"{name: small, kind: prune, from: ./m, target: {parameters: 97%}, sizing: "
       "sizing.json, data: [text], calibration_tokens: 2k, sequence_length: 64, search: {tolerance: 20%}}",
       "{name: best, kind: select, models: [small, ./m], teacher: ./m, sizing: sizing.json, data: [text], "
       "tokens: 256, packing: {sequence_length: 64}, batch: {sequences: 2}}"});
  const Finished first = project_.run_recipe({"--dtype", "fp32", "--stage", "small"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_SAYS(first.err, "stage 'small': sizing.json: was measured with Made Up 9000");
  auto faster = sizing;
  faster["dtypes"]["fp32"]["square_flops_per_second"] = 1e15;
  project_.write("sizing.json", faster.dump());
  const Finished changed = project_.run_recipe({"--dtype", "fp32"});
  EXPECT_EQ(changed.code, 2);
  EXPECT_SAYS(changed.err, "'sizing.json' has changed since stage 'small' read it");
  project_.write("sizing.json", sizing.dump());
  const Finished finished = project_.run_recipe({"--dtype", "fp32"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.err, "stage 'best': sizing.json: was measured with Made Up 9000");
  for (const std::string stage : {"small", "best"})
    EXPECT_EQ(file("run/stages/" + stage + ".json").at("speed").at("conditions").at("rates_of"),
              "Made Up 9000");
  EXPECT_SAYS(files_below(project_.path()).at("run/report.html"),
              "one sequence, expected by the rates of Made Up 9000, in fp32.");
}

TEST_F(Bench, OfKernelsComparesThemWithMemoryAndProducts) {
  const Finished measured =
      project_.run(quick({"bench", "kernels", "m", "--dtype", "bf16", "--json", "--out", "kernels.json"}));
  ASSERT_EQ(measured.code, 0) << measured.err;
  const auto printed = base::Json::parse(measured.out);
  EXPECT_EQ(printed, file("kernels.json"));
  std::map<std::string, std::string> limits;
  for (const auto& one : printed.at("dtypes").at("bf16").at("kernels"))
    limits[one.at("kernel")] = one.at("ceiling");
  EXPECT_EQ(limits.at("rms_norm"), "memory");
  EXPECT_EQ(limits.at("attention_backward"), "product");
  EXPECT_EQ(limits.at("decode_product"), "memory");
  const Finished table = project_.run(quick({"bench", "kernels", "m", "--dtype", "fp32"}));
  EXPECT_SAYS(table.out, "adamw");
  EXPECT_FALSE(std::filesystem::exists(project_.path("sizing.json")));
}

TEST_F(Bench, MistakesAreOneSentence) {
  expect_refusal(project_, {"bench"}, 2, "subcommand");
  expect_refusal(project_, {"bench", "gem"}, 2, "bench");
  expect_refusal(project_, {"bench", "gemm", "m", "--tokens", "few"}, 2, "--tokens");
  expect_refusal(project_, {"bench", "gemm", "m", "--dtype", "int8"}, 2, "--dtype");
  expect_refusal(project_, {"bench", "gemm", "none"}, 4, "none");
  std::filesystem::create_directory(project_.path("bad"));
  project_.write("bad/config.json", "{");
  expect_refusal(project_, {"bench", "kernels", "bad"}, 4, "bad/config.json");
  project_.write("sizing.json", "{\"format\": 7}");
  project_.write_recipe(
      {"{name: small, kind: prune, from: ./m, target: {parameters: 97%}, sizing: "
       "sizing.json, data: [text], calibration_tokens: 2k, sequence_length: 64}"});
  expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "run"}, 3,
                 "sizing.json: expected what retort bench gemm writes");
}

}  // namespace
}  // namespace retort::test
