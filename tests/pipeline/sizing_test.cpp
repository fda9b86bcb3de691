// What a prune stage takes from a file of sizes, and what is said of files that were made elsewhere.
#include "retort/pipeline/sizing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pipeline/project.h"
#include "retort/base/error.h"
#include "retort/bench/sizing.h"
#include "support/message_of.h"
#include "support/ranks.h"

namespace retort::pipeline {
namespace {

using test::Listener;
using test::Project;

// Rates of multiples 1, 2, 4, ... of which `first` is the first good one.
bench::Sweep good_from(std::int64_t first) {
  bench::Sweep sweep{.center = 1024, .multiples = {}};
  for (std::int64_t multiple = 1; multiple <= 256; multiple *= 2)
    sweep.multiples.push_back({multiple, multiple < first ? 1e10 : 1e11, {3 * multiple}});
  return sweep;
}

class SizingOfAStage : public testing::Test {
 protected:
  void SetUp() override { write(good_from(64), good_from(128)); }

  void write(const bench::Sweep& mlp_width, const bench::Sweep& hidden_size,
             const std::function<void(bench::Conditions&)>& change = {}) const {
    bench::Conditions conditions{.machine = bench::this_machine(at::kCPU),
                                 .model = "models/mine",
                                 .config = {},
                                 .tokens = 1024,
                                 .memory = {}};
    conditions.config.hidden_size = Project::kHidden;
    if (change) change(conditions);
    bench::GemmRates rates;
    rates.square_flops = 1e11;
    rates.mlp_width = mlp_width;
    rates.hidden_size = hidden_size;
    base::write_file_atomically(project_.path("sizing.json"),
                                bench::gemm_json(conditions, {{"fp32", rates}}).dump());
  }

  // The width that the stage ends up with.
  std::int64_t settled(const std::string& keys, const std::string& dtype = "fp32") {
    auto recipe =
        project_.recipe_of({"{name: pruned, kind: prune, from: MODEL, data: [text], target: {parameters: "
                            "90%}, sizing: " +
                            project_.path("sizing.json").string() + keys + "}"});
    const KnownModels models(recipe);
    listener_.said.clear();
    settle_widths(recipe, models, dtype, at::kCPU, listener_);
    return std::get<prune::PruneOptions>(recipe.stages.front().options).width_multiple;
  }

  Project project_;
  Listener listener_;
};

TEST_F(SizingOfAStage, AdvisesItsWidth) {
  EXPECT_EQ(settled(""), 64);
  EXPECT_SAYS(listener_.said, "advises multiples of 64; width_multiple is 64");
  EXPECT_EQ(settled(", units: uniform, hidden: true"), 128);
  write(good_from(8), good_from(128));
  EXPECT_EQ(settled(""), prune::kUsualWidthMultiple);
  EXPECT_SAYS(listener_.said, "advises multiples of 8; width_multiple is 32");
}

TEST_F(SizingOfAStage, LeavesTheWidthOfTheRecipeAndWarnsOfASlowOne) {
  EXPECT_EQ(settled(", width_multiple: 128"), 128);
  EXPECT_EQ(listener_.said, "");
  EXPECT_EQ(settled(", width_multiple: 48"), 48);
  // Of multiples of 16 a half and a quarter are slow: 0.5 + 0.25 of a tenth, and 0.25 of all.
  EXPECT_SAYS(listener_.said,
              "widths in multiples of 48 reach 33 % of the best rate, and those of 64 more than 95 %");
}

TEST_F(SizingOfAStage, WarnsOfAnotherMachineOrModel) {
  EXPECT_EQ(settled(", width_multiple: 64"), 64);
  EXPECT_EQ(listener_.said, "");
  write(good_from(64), good_from(64),
        [](auto& conditions) { conditions.machine.processor = "Made Up 9000"; });
  EXPECT_EQ(settled(""), 64);
  EXPECT_SAYS(listener_.said, "was measured with Made Up 9000 instead of ");
  write(good_from(64), good_from(64), [](auto& conditions) { conditions.config.hidden_size = 768; });
  EXPECT_EQ(settled(""), 64);
  EXPECT_SAYS(listener_.said, "was measured for a hidden size of 768, and the model has 32");
}

TEST_F(SizingOfAStage, NamesTheMachineOnlyIfItIsAnother) {
  recipe::Stage stage;
  EXPECT_FALSE(other_machine(stage, at::kFloat, at::kCPU));
  stage.sizing = project_.path("sizing.json").string();
  EXPECT_FALSE(other_machine(stage, at::kFloat, at::kCPU));
  write(good_from(64), good_from(64), [](auto& conditions) { ++conditions.machine.threads; });
  EXPECT_FALSE(other_machine(stage, at::kFloat, at::kCPU));
  write(good_from(64), good_from(64),
        [](auto& conditions) { conditions.machine.processor = "Made Up 9000"; });
  const auto other = other_machine(stage, at::kFloat, at::kCPU);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->name, "Made Up 9000");
  EXPECT_EQ(other->rates.mlp_width.rate_at(3 * 64), 1e11);
  EXPECT_EQ(other->rates.mlp_width.rate_at(3 * 32), 1e10);
}

TEST_F(SizingOfAStage, IsWhatRankZeroHasReadOnEveryRank) {
  test::on_ranks(3, [&](comm::Group& group) {
    auto recipe =
        project_.recipe_of({"{name: one, kind: prune, from: MODEL, data: [text], target: {parameters: 90%}}",
                            "{name: other, kind: prune, from: one, data: [text], target: {parameters: 90%}, "
                            "width_multiple: 48}"});
    const auto width = [&](const char* stage) {
      return std::get<prune::PruneOptions>(recipe.stage(stage).options).width_multiple;
    };
    EXPECT_EQ(width("one"), prune::kWidthMultipleOfModel);
    Listener silent;
    if (group.rank() == 0) settle_widths(recipe, KnownModels(recipe), "fp32", at::kCPU, silent);
    share_widths(recipe, group);
    EXPECT_EQ(width("one"), prune::kUsualWidthMultiple);
    EXPECT_EQ(width("other"), 48);
  });
}

// The model may be gone, and an earlier version took other widths.
TEST_F(SizingOfAStage, OfARunThatGoesOnIsTheOneThatItBeganWith) {
  auto recipe = project_.recipe_of(
      {"{name: pruned, kind: prune, from: MODEL, data: [text], target: {parameters: 90%}}"});
  base::make_directories(project_.run_directory());
  base::write_file_atomically(project_.run_directory() / "recipe.json",
                              R"({"version": 1, "stages": {"pruned": {"width_multiple": 48}}})");
  base::make_directories(project_.run_directory() / "stages");
  base::write_file_atomically(project_.run_directory() / "stages/pruned.json", "{}");
  std::filesystem::remove_all(project_.path("model"));
  const KnownModels models(recipe, record::RunFiles(project_.run_directory()));
  settle_widths(recipe, models, "fp32", at::kCPU, listener_);
  EXPECT_EQ(std::get<prune::PruneOptions>(recipe.stages.front().options).width_multiple, 48);
}

TEST_F(SizingOfAStage, OfAnotherTypeIsRefused) {
  const auto message = test::message_of<base::UsageError>([&] { (void)settled("", "bf16"); });
  EXPECT_SAYS(message, "stage 'pruned': expected rates in bf16, the type that the run computes in, in ");
  EXPECT_SAYS(message, "retort bench gemm MODEL --out ");
}

TEST_F(SizingOfAStage, IsNotReadWhereNoStageNamesIt) {
  auto recipe = project_.recipe_of(
      {"{name: pruned, kind: prune, from: MODEL, data: [text], target: {parameters: 90%}}", test::kFinetune});
  auto expected = recipe;
  std::get<prune::PruneOptions>(expected.stages.front().options).width_multiple = prune::kUsualWidthMultiple;
  settle_widths(recipe, KnownModels(recipe), "bf16", at::kCPU, listener_);
  EXPECT_EQ(recipe::to_json(recipe), recipe::to_json(expected));
  EXPECT_EQ(listener_.said, "");
}

}  // namespace
}  // namespace retort::pipeline
