// What a model directory holds and Retort does not use is told by every command that loads the model, once.
#include <gtest/gtest.h>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

void add_keys(const TinyProject& project, const std::string& file) {
  auto config = base::parse_json(base::read_file(project.path(file)));
  config["new_key"] = 1;
  config["attention_dropout"] = 0.1;
  project.write(file, config.dump());
}

void expect_told_once(const Finished& finished) {
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(times(finished.err, "\"new_key\" is not known and was not used"), 1) << finished.err;
  EXPECT_EQ(times(finished.err, "attention_dropout 0.1 is not applied"), 1) << finished.err;
}

TEST(ModelNotes, AreToldByEveryCommandThatLoadsTheModel) {
  const TinyProject project;
  copy_model(project, "m");
  add_keys(project, "m/config.json");
  expect_told_once(project.run({"eval", "m", "--text", "text.txt", "--context", "64", "--teacher", "m"}));
  expect_told_once(project.run({"generate", "m", "--prompt", "the", "--max-new-tokens", "1"}));
  expect_told_once(project.run({"bench", "gemm", "m", "--seconds", "1", "--dtype", "fp32"}));
}

TEST(ModelNotes, AreToldOnceByARunHoweverManyStagesLoadTheModel) {
  const TinyProject project;
  copy_model(project, "m");
  add_keys(project, "m/config.json");
  project.write_recipe({finetune_stage("./m"),
                        "{name: scores, kind: evaluate, models: [./m, tuned], teacher: ././m, data: [text], "
                        "windows: rolling, context: 64}"});
  expect_told_once(project.run_recipe({"--dry-run"}));
  expect_told_once(project.run_recipe());
}

TEST(ModelNotes, AreToldOfTheConfigurationThatATrainStageBeginsWith) {
  const TinyProject project;
  add_keys(project, "config.json");
  project.write_recipe({train_stage(128)});
  expect_told_once(project.run_recipe());
}

TEST(ModelNotes, TellOfWeightsThatAreNotAsTheConfigurationSays) {
  const TinyProject project;
  copy_model(project, "m");
  auto config = base::parse_json(base::read_file(project.path("m/config.json")));
  config["dtype"] = "bfloat16";
  project.write("m/config.json", config.dump());
  const Finished finished = project.run({"generate", "m", "--prompt", "the", "--max-new-tokens", "1"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(times(finished.err, "config.json says bfloat16, but all weights are float32"), 1) << finished.err;
}

}  // namespace
}  // namespace retort::test
