// Stage select, from its result: the model with the least held-out loss is taken.
#include <gtest/gtest.h>

#include "pipeline/trained_project.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/json.h"

namespace retort::pipeline {
namespace {

class SelectTest : public testing::Test {
 protected:
  // Two models that differ in width and in what they know, and the choice among them.
  base::Json chosen_of(const std::string& tokens_of_the_narrow) {
    std::string narrow = base::read_file(project_.path("config.json"));
    narrow.replace(narrow.find("\"intermediate_size\": 32"), 23, "\"intermediate_size\": 16");
    base::write_file_atomically(project_.path("narrow.json"), narrow);
    std::string born_narrow = project_.train_stage("narrow", ", optim: {lr: 3e-3}");
    born_narrow.replace(born_narrow.find("config.json"), 11, "narrow.json");
    born_narrow.replace(born_narrow.find("tokens: 512"), 11, "tokens: " + tokens_of_the_narrow);
    const auto recipe = project_.recipe(
        {project_.train_stage("wide", ", optim: {lr: 3e-3}"), born_narrow,
         std::string(
             "{name: chosen, kind: select, models: [wide, narrow], teacher: wide, data: [text], tokens: "
             "256, ") +
             test::TrainedProject::kPacking + "}"});
    EXPECT_TRUE(run(recipe, project_.request(false), told_).finished);
    return base::parse_json(base::read_file(project_.path("run/stages/chosen.json")));
  }

  test::TrainedProject project_;
  test::Told told_;
};

TEST_F(SelectTest, TakesTheLeastLoss) {
  const auto result = chosen_of("512");
  const base::Json* chosen = nullptr;
  double least_nll = 1e300;
  ASSERT_EQ(result.at("models").size(), 2U);
  for (const auto& model : result.at("models")) {
    least_nll = std::min(least_nll, model.at("nll").get<double>());
    if (model.at("name") == result.at("chosen")) chosen = &model;
  }
  ASSERT_NE(chosen, nullptr);
  EXPECT_TRUE(chosen->at("tied"));
  EXPECT_DOUBLE_EQ(chosen->at("nll").get<double>(), least_nll);
  for (const auto& model : result.at("models"))
    EXPECT_DOUBLE_EQ(model.at("behind"), model.at("nll").get<double>() - least_nll);
}

TEST_F(SelectTest, LeavesTheChosenModelAsItCameIn) {
  const auto result = chosen_of("512");
  const auto name = result.at("chosen").get<std::string>();
  const auto config = [&](const std::string& stage) {
    return architecture::read_config(project_.path("run") / "models" / stage);
  };
  EXPECT_EQ(config("chosen").blocks, config(name).blocks);
  EXPECT_EQ(base::read_file(project_.path("run/models/chosen/model.safetensors")).size(),
            base::read_file(project_.path("run/models") / name / "model.safetensors").size());
}

}  // namespace
}  // namespace retort::pipeline
