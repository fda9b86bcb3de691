// A profile stage, and a prune stage that ranks by it.
#include <gtest/gtest.h>

#include <csignal>

#include "cli/refusal.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

const std::string kText = ", data: [text], calibration_tokens: 2k, sequence_length: 64";

std::string prune_stage(const std::string& more) {
  return "{name: small, kind: prune, units: uniform, from: ./m, target: {parameters: 97.5%}, width_multiple: "
         "24, blocks: "
         "false" +
         kText + more + "}";
}

class Profile : public testing::Test {
 protected:
  void SetUp() override { copy_model(project_, "m"); }
  base::Json result(const std::string& stage) const {
    return base::Json::parse(files_below(project_.path("run/stages")).at(stage + ".json"));
  }
  TinyProject project_;
};

const std::string kSeen = "{name: seen, kind: profile, from: ./m" + kText + "}";

// The stage without it ranks by the documents that it fits to, so what goes may differ, and how much may not.
TEST_F(Profile, RanksForAPruneStage) {
  for (const char* ranking : {"wanda", "obs"}) {
    fs::remove_all(project_.path("run"));
    const std::string by = std::string(", channel_ranking: ") + ranking + ", head_ranking: " + ranking;
    project_.write_recipe({kSeen, prune_stage(by + ", profile: seen"),
                           "{name: other, kind: prune, units: uniform, from: ./m, target: {parameters: "
                           "97.5%}, width_multiple: 24, "
                           "blocks: false" +
                               kText + by + "}"});
    const Finished finished = project_.run_recipe();
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_SAYS(finished.err, "statistics of two blocks");
    const auto small = result("small"), other = result("other");
    EXPECT_LE(small.at("parameters_after"), small.at("parameters_target"));
    EXPECT_EQ(small.at("parameters_target"), other.at("parameters_target"));
    EXPECT_EQ(small.at("calibration"), other.at("calibration"));
  }
  EXPECT_EQ(result("seen").at("tokens"), 2048);
  EXPECT_FALSE(result("seen").contains("parameters"));
  EXPECT_TRUE(fs::exists(project_.path("run/stages/seen/profile.json")));
  EXPECT_FALSE(fs::exists(project_.path("run/checkpoints/seen")));
  EXPECT_SAYS(files_below(project_.path("run")).at("report.html"), "id=\"profile\"");
}

TEST_F(Profile, GoesOnAfterASignalWithTheSameFiles) {
  const std::string long_text =
      "{name: seen, kind: profile, from: ./m, data: [text], calibration_tokens: 8k, "
      "sequence_length: 64}";
  project_.write_recipe({long_text});
  ASSERT_EQ(project_.run_recipe().code, 0);
  const auto expected = files_below(project_.path("run/stages/seen"));
  fs::remove_all(project_.path("run"));
  for (const int number : {SIGKILL, SIGTERM}) {
    Running running({"run", "recipe.yaml", "--run-dir", "run"}, "", project_.path());
    const auto target = project_.path("run/stages/seen") /
                        (number == SIGKILL ? "block-00000.safetensors" : "block-00001.safetensors");
    if (wait_until(running, [&] { return fs::exists(target); })) running.signal(number);
    running.wait();
  }
  ASSERT_EQ(project_.run_recipe().code, 0);
  EXPECT_TRUE(files_below(project_.path("run/stages/seen")) == expected);
}

TEST_F(Profile, RunsThatCannotSucceedAreRefusedBeforeTheyBegin) {
  const std::vector<std::string> run{"run", "recipe.yaml", "--run-dir", "new/run"};
  const auto expect = [&](const std::string& stages, int code, const std::string& culprit,
                          const std::vector<std::string>& more = {}) {
    SCOPED_TRACE(culprit);
    project_.write_recipe({stages});
    auto arguments = run;
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refusal(project_, arguments, code, culprit);
  };
  expect(kSeen, 6, "prune without a profile", {"--set", "memory_bytes=1M"});
  expect(kSeen, 6, "statistics of two blocks", {"--set", "memory_bytes=1M", "--dry-run"});
  expect("{name: seen, kind: profile, from: ./m, data: [text], sequence_length: 640}", 2,
         "sequence_length is 640");
  expect("{name: seen, kind: profile, from: ./m, data: [text], calibration_tokens: 9M, sequence_length: 64}",
         3, "source 'text' has only");
  for (const char* ranking : {"channel_ranking", "head_ranking"}) {
    project_.write_recipe({kSeen, prune_stage(std::string(", profile: seen, ") + ranking + ": taylor")});
    expect_refusal(project_, run, 2, "taylor needs gradients");
  }
  project_.write_recipe({kSeen, prune_stage(", profile: seen")});
  expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "new/run", "--stage", "small"}, 2,
                 "needs the profile of stage 'seen'");
}

TEST_F(Profile, DryRunShowsItsMemoryAndWritesNothing) {
  project_.write_recipe({kSeen});
  const auto before = files_below(project_.path());
  const Finished finished = project_.run_recipe({"--dry-run"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.out, "statistics of two blocks");
  EXPECT_TRUE(files_below(project_.path()) == before);
}

TEST_F(Profile, OfAModelThatHasChangedIsRefused) {
  project_.write_recipe({kSeen, prune_stage(", profile: seen")});
  ASSERT_EQ(project_.run_recipe({"--stage", "seen"}).code, 0);
  auto config = base::Json::parse(files_below(project_.path("m")).at("config.json"));
  config["rms_norm_eps"] = 2e-5;
  project_.write("m/config.json", config.dump());
  const Finished finished = project_.run_recipe();
  EXPECT_EQ(finished.code, 2);
  EXPECT_SAYS(finished.err, "'./m/config.json' has changed since stage 'seen' read it");

  // As an earlier version left it.
  auto result = base::Json::parse(files_below(project_.path("run")).at("stages/seen.json"));
  for (const char* key : {"input_files", "output_files", "checksum"}) result.erase(key);
  project_.write("run/stages/seen.json", result.dump());
  const Finished later = project_.run_recipe();
  EXPECT_EQ(later.code, 2);
  EXPECT_SAYS(later.err, "stage 'small': profile 'seen' is of another model than './m'");
}

}  // namespace
}  // namespace retort::test
