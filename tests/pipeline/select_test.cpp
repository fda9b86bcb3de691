// Stage select, from its result: the model with the least held-out loss is taken.
#include <gtest/gtest.h>

#include "pipeline/trained_project.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "support/message_of.h"

namespace retort::pipeline {
namespace {

class SelectTest : public testing::Test {
 protected:
  // Two models that differ in width and in what they know, and the choice among them.
  base::Json chosen_of(const std::string& tokens_of_the_narrow, const std::string& target = "") {
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
             target + test::TrainedProject::kPacking + "}"});
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

// Times are measured once, so made-up ones can take the place of those of this machine.
TEST_F(SelectTest, TakesNoneThatIsSlowerThanItsTarget) {
  const auto refusal = test::message_of<base::UsageError>(
      [&] { chosen_of("512", "target: {milliseconds: 1e-6, context: 32}, "); });
  EXPECT_SAYS(refusal,
              "stage 'chosen': target: expected a model that takes at most 0.000 ms a token, found wide (");
  EXPECT_SAYS(refusal, "narrow (");

  const char* thousand_seconds = "target: {milliseconds: 1e6, context: 32}, ";
  EXPECT_EQ(chosen_of("512", thousand_seconds).at("models").size(), 2U) << "after another target";
  const auto file = project_.path("run/checkpoints/chosen/token_times.json");
  auto times = base::parse_json(base::read_file(file));
  ASSERT_EQ(times.at("times").at("seconds").size(), 2U);
  EXPECT_GT(times.at("times").at("seconds").at(1), 0.0);
  times["times"]["seconds"] = {2000.0, 0.001};
  base::write_file_atomically(file, times.dump());
  std::filesystem::remove(project_.path("run/stages/chosen.json"));
  const auto result = chosen_of("512", thousand_seconds);
  EXPECT_EQ(result.at("chosen"), "narrow");
  EXPECT_EQ(result.at("models").size(), 1U) << "what is too slow takes no part";
  const auto& latency = result.at("latency");
  EXPECT_DOUBLE_EQ(latency.at("target_seconds"), 1000.0);
  EXPECT_FALSE(latency.at("models").at(0).at("meets_target"));
  EXPECT_TRUE(latency.at("models").at(1).at("meets_target"));
  EXPECT_TRUE(told_.has(told_.messages, "of the target take wide (2000000.000 ms)"));
}

// Models of this size take the same time but for noise, which may leave none below the target.
TEST_F(SelectTest, MayHaveAShareOfTheTeachersTime) try {
  const auto result = chosen_of("512", "target: {latency: 99.999%, batch: 2, context: 32, dtype: fp64}, ");
  const auto& latency = result.at("latency");
  EXPECT_EQ(latency.at("dtype"), "fp64");
  EXPECT_NEAR(latency.at("target_seconds").get<double>(),
              0.99999 * latency.at("teacher_seconds").get<double>(), 1e-12);
} catch (const base::Error& error) {
  EXPECT_SAYS(std::string(error.what()), "target: expected a model that takes at most ");
}

}  // namespace
}  // namespace retort::pipeline
