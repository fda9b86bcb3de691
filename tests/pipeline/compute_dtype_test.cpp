// Which type `auto` is, and that a run stays with it.
#include "retort/pipeline/compute_dtype.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pipeline/project.h"
#include "retort/base/files.h"
#include "retort/model/dtype.h"
#include "retort/record/run_files.h"
#include "support/message_of.h"

namespace retort::pipeline {
namespace {

using test::Listener;
using test::Project;

constexpr const char* kDistill =
    "{name: healed, kind: distill, from: pruned, teacher: MODEL, data: [text], tokens: 128, packing: "
    "{sequence_length: 32}, batch: {sequences: 3}}";
constexpr const char* kPrune =
    "{name: pruned, kind: prune, units: uniform, from: MODEL, data: [text], target: {parameters: 90%}}";

TEST(ComputeDtype, IsMeasuredInTheShapesOfWhatIsTrained) {
  const Project project;
  const auto recipe = project.recipe_of({kPrune, kDistill});
  const auto shape = trained_product(recipe);
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->rows, 96);
  EXPECT_EQ(shape->inner, Project::kHidden);
  EXPECT_EQ(shape->columns, Project::kWidth);
  const auto chosen = compute_dtype(recipe, project.run_directory(), at::kCPU);
  ASSERT_TRUE(chosen.measured.has_value());
  EXPECT_EQ(chosen.name, model::dtype_name(chosen.measured->faster()));
  EXPECT_EQ(chosen.measured->shape.rows, 96);
}

TEST(ComputeDtype, OfARecipeThatTrainsNothingIsFp32) {
  const Project project;
  const auto chosen = compute_dtype(project.recipe_of({kPrune}), project.run_directory(), at::kCPU);
  EXPECT_EQ(chosen.name, "fp32");
  EXPECT_FALSE(chosen.measured.has_value());
}

TEST(ComputeDtype, ThatIsNamedIsNotMeasured) {
  const Project project;
  for (const std::string name : {"fp32", "bf16"}) {
    const auto recipe = project.recipe_of({test::kFinetune}, "dtype: " + name + "\n");
    const auto chosen = compute_dtype(recipe, project.run_directory(), at::kCPU);
    EXPECT_EQ(chosen.name, name);
    EXPECT_FALSE(chosen.measured.has_value());
  }
}

// One of the two is what a second measurement would not say.
TEST(ComputeDtype, OfARunThatGoesOnIsTheOneThatItBeganWith) {
  const Project project;
  for (const std::string begun : {"bf16", "fp32"}) {
    const auto directory = project.path("begun-in-" + begun);
    base::make_directories(directory);
    base::write_file_atomically(directory / "provenance.json", "{}");
    base::write_file_atomically(directory / "recipe.json", base::Json{{"dtype", begun}}.dump());
    const auto chosen = compute_dtype(project.recipe_of({test::kFinetune}), directory, at::kCPU);
    EXPECT_EQ(chosen.name, begun);
    EXPECT_FALSE(chosen.measured.has_value());
  }
}

TEST(ComputeDtype, IsInTheLogAndInTheProvenanceWithBothRates) {
  const Project project;
  Listener first, second;
  const auto request = test::run_in(project.run_directory());
  ASSERT_TRUE(run(project.recipe_of({test::kFinetune}), request, first).finished);
  EXPECT_SAYS(first.said, "dtype auto: a product of 128 x 32 by 32 x 64 runs at ");
  EXPECT_SAYS(first.said, "computing in ");
  ASSERT_TRUE(run(project.recipe_of({test::kFinetune}), request, second).finished);
  EXPECT_EQ(second.said.find("dtype auto"), std::string::npos) << second.said;

  const auto provenance = record::RunFiles(project.run_directory()).provenance();
  const auto& starts = provenance.at("starts");
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_GT(starts[0].at("dtype_auto").at("fp32_flops").get<double>(), 0);
  EXPECT_GT(starts[0].at("dtype_auto").at("bf16_flops").get<double>(), 0);
  EXPECT_FALSE(starts[1].contains("dtype_auto"));
  for (const auto& start : starts)
    EXPECT_EQ(start.at("compute_dtype"), record::RunFiles(project.run_directory()).recipe().at("dtype"));
}

}  // namespace
}  // namespace retort::pipeline
