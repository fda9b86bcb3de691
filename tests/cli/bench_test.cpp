// Rates of this machine.  No case says how fast a machine is.
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

TEST_F(Bench, OfProductsPrintsAndWritesTheirRates) {
  const Finished measured =
      project_.run(quick({"bench", "gemm", "m", "--dtype", "fp32", "--out", "rates.json"}));
  ASSERT_EQ(measured.code, 0) << measured.err;
  for (const char* part : {"GB/s reading", "GFLOP/s in fp32", "gate_up", "weight gradient"})
    EXPECT_SAYS(measured.out, part);
  EXPECT_SAYS(measured.err, "written: rates.json");
  EXPECT_EQ(file("rates.json").at("kind"), "gemm");
  EXPECT_EQ(file("rates.json").at("model").at("name"), "m");
}

TEST_F(Bench, RunKeepsTheWidthThatItBeganWith) {
  project_.write_recipe(
      {"{name: small, kind: prune, units: uniform, blocks: false, from: ./m, target: {parameters: 97.5%}, "
       "data: [text], calibration_tokens: 2k, sequence_length: 64}"});
  const Finished finished = project_.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(file("run/recipe.json").at("stages").at("small").at("width_multiple"), 32);
  EXPECT_EQ(project_.run_recipe().code, 0);
}

TEST_F(Bench, RecipesThatNameAFileOfRatesAreToldWhatToDo) {
  project_.write_recipe(
      {"{name: small, kind: prune, from: ./m, target: {parameters: 97%}, sizing: sizing.json, data: "
       "[text]}"});
  expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "run"}, 2,
                 "stages.small.sizing: no file of rates is read any more; leave the key out");
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
}

}  // namespace
}  // namespace retort::test
