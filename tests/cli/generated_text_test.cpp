// Recipes whose text a model writes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "cli/tiny_project.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

std::string finetune(const std::string& data, const std::string& more = "") {
  return "{name: tuned, kind: finetune, from: born, data: [" + data +
         "], tokens: 512, packing: {sequence_length: 64}, batch: {sequences: 2}, evaluate_tokens: 256" +
         more + "}";
}

class GeneratedText : public testing::Test {
 protected:
  // The source `made` beside `text`.
  void write_recipe(const std::string& generated, const std::vector<std::string>& stages,
                    const std::string& more = ", held_out: {every: 4}") const {
    std::string text =
        "version: 1\ndata:\n  text: {path: text.txt, separator: \"\\n\\n\", held_out: {every: 10}}\n"
        "  made: {generated: {" +
        generated + "}" + more + "}\nstages:\n";
    for (const auto& stage : stages) text += "  - " + stage + "\n";
    project_.write("recipe.yaml", text);
  }
  std::string written(const char* run = "run") const {
    return base::read_file(project_.path(run) / "text/made/text.jsonl");
  }
  std::vector<std::string> in(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"run", "recipe.yaml", "--run-dir", run};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TinyProject project_;
};

const std::string kMade = "model: born, tokens: 1200, max_new_tokens: 24, batch: 4";

TEST_F(GeneratedText, IsWrittenByAStageBeforeItsReaderBegins) {
  write_recipe(kMade, {train_stage(128), finetune("made")});
  const auto made = project_.run(in("run"));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_SAYS(made.err, "text made: born writes 1200 tokens");
  const auto text = written();
  EXPECT_TRUE(text.starts_with("{\"text\":"));
  const auto result = base::parse_json(base::read_file(project_.path("run/stages/tuned.json")));
  EXPECT_EQ(result.at("input_files").size(), 1U);
  EXPECT_SAYS(base::read_file(project_.path("run/report.html")), "Text to learn from");
  const auto again = project_.run(in("run"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(written(), text);
}

TEST_F(GeneratedText, IsTheSameOnAnyNumberOfRanks) {
  copy_model(project_, "m");
  write_recipe("model: ./m, tokens: 1200, max_new_tokens: 24, batch: 4",
               {"{name: tuned, kind: finetune, from: ./m, data: [made], tokens: 512, packing: "
                "{sequence_length: 64}, batch: {sequences: 2}, evaluate_tokens: 256}"});
  ASSERT_EQ(project_.run(in("one")).code, 0);
  const auto two = project_.run(in("two", {"--ranks", "2"}));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(written("two"), written("one"));
}

TEST_F(GeneratedText, GoesOnWithTheSameBytesAfterItWasKilled) {
  write_recipe(kMade, {train_stage(128), finetune("made")});
  ASSERT_EQ(project_.run(in("whole")).code, 0);
  {
    Running running(in("killed"), "", project_.path());
    ASSERT_TRUE(wait_until(running, [&] {
      std::error_code ignored;
      return fs::file_size(project_.path("killed/text/made/text.jsonl"), ignored) > 0 && !ignored;
    })) << running.err();
    running.signal(SIGKILL);
    (void)running.wait();
  }
  const auto again = project_.run(in("killed"));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(written("killed"), written("whole"));
  EXPECT_EQ(weights_of(project_.path("killed"), "tuned"), weights_of(project_.path("whole"), "tuned"));
}

TEST_F(GeneratedText, IsWrittenAnewByOtherOptionsUntilAStageHasRead) {
  write_recipe(kMade, {train_stage(128), finetune("made", ", optim: {lr: 1.0e+30, clip_norm: 0}")});
  (void)project_.run(in("run"));
  ASSERT_TRUE(fs::exists(project_.path("run/text/made/text.jsonl")));
  const auto first = written();
  fs::remove_all(project_.path("run/checkpoints/tuned"));
  fs::remove_all(project_.path("run/models/tuned"));
  fs::remove(project_.path("run/stages/tuned.json"));
  write_recipe(kMade + ", seed: 5", {train_stage(128), finetune("made")});
  const auto anew = project_.run(in("run"));
  ASSERT_EQ(anew.code, 0) << anew.err;
  EXPECT_SAYS(anew.err, "is written anew");
  EXPECT_NE(written(), first);
  write_recipe(kMade + ", seed: 6", {train_stage(128), finetune("made")});
  const auto refused = project_.run(in("run"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_SAYS(refused.err, "data.made.generated.seed");
}

TEST_F(GeneratedText, IsPlannedInADryRunWithoutBeingWritten) {
  write_recipe(kMade, {train_stage(128), finetune("made")});
  const auto dry = project_.run(in("run", {"--dry-run"}));
  ASSERT_EQ(dry.code, 0) << dry.err;
  EXPECT_SAYS(dry.out, "text made, by born");
  EXPECT_FALSE(fs::exists(project_.path("run")));
  ASSERT_EQ(project_.run(in("run", {"--stage", "born"})).code, 0);
  const auto known = project_.run(in("run", {"--dry-run"}));
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_SAYS(known.out, "writes 1.2 k tokens");
}

TEST_F(GeneratedText, IsRefusedBeforeTheRunWhereItCannotBeWritten) {
  const auto refused = [&](const std::string& generated, const std::string& culprit) {
    write_recipe(generated, {train_stage(128), finetune("made")});
    const auto found = project_.run(in("run"));
    EXPECT_NE(found.code, 0) << generated;
    EXPECT_SAYS(found.err, culprit);
    EXPECT_FALSE(fs::exists(project_.path("run"))) << generated;
  };
  refused("model: born, tokens: 1k, chat: true", "ask for documents instead of chats");
  refused("model: ./nowhere, tokens: 1k", "nowhere");
  refused("model: tuned, tokens: 1k", "does not come before it");
  refused("model: borm, tokens: 1k", "did you mean 'born'");
  refused("model: born, tokens: 0", "tokens to keep above 0");
}

// One text cannot be divided.
TEST_F(GeneratedText, IsRefusedWhereItHoldsOutNothing) {
  write_recipe(
      "model: born, tokens: 1, max_new_tokens: 24",
      {train_stage(128), "{name: scores, kind: evaluate, models: [born], data: [made], context: 64}"});
  const auto found = project_.run(in("run"));
  EXPECT_EQ(found.code, 3) << found.err;
  EXPECT_SAYS(found.err, "expected held-out documents with text in 'made'");
}

}  // namespace
}  // namespace retort::test
