// Paths that are no text, pipes and devices in the place of files, links that lead away.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "cli/refusal.h"
#include "retort/base/files.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

class StrangePlaces : public testing::Test {
 protected:
  /// Ended by SIGALRM where it waits for what never comes.
  Finished run_in_time(const std::vector<std::string>& arguments) const {
    constexpr unsigned kPatience_seconds = 120;
    return test::run(arguments, "", project_.path(), [] { ::alarm(kPatience_seconds); });
  }
  void make_pipe(const fs::path& name) const {
    fs::remove(project_.path(name));
    ASSERT_EQ(::mkfifo(project_.path(name).c_str(), 0600), 0);
  }

  TinyProject project_;
};

TEST_F(StrangePlaces, OfNoUtf8HoldARunOfAllKindsOfStages) {
  const fs::path place = "caf\xe9\n\xff";  // Latin-1
  fs::create_directories(project_.path(place));
  copy_model(project_, place / "m");
  fs::rename(project_.path("text.txt"), project_.path("text \xfc.txt"));
  project_.write(
      "recipe.yaml",
      "version: 1\n"
      "data:\n  text: {path: 'text*.txt', separator: \"\\n\\n\", held_out: {every: 10}}\n"
      "stages:\n"
      "  - " +
          train_stage(512) +
          "\n"
          "  - {name: p, kind: prune, from: born, data: [text], target: {parameters: 96%}, units: uniform, "
          "calibration_tokens: 2k, sequence_length: 64}\n"
          "  - {name: q, kind: profile, from: p, data: [text], calibration_tokens: 2k, sequence_length: 64}\n"
          "  - {name: s, kind: sparsify, from: p, data: [text], calibration_tokens: 2k, sequence_length: "
          "64}\n"
          "  - {name: d, kind: distill, from: s, teacher: born, data: [text], tokens: 512, packing: "
          "{sequence_length: 64}, batch: {sequences: 2}, evaluate_tokens: 256}\n"
          "  - {name: e, kind: evaluate, models: [s, d], data: [text], context: 64}\n");
  const auto run_path = (place / "run").string();
  for (const char* when : {"first", "again"}) {
    SCOPED_TRACE(when);
    const auto finished = project_.run({"run", "recipe.yaml", "--run-dir", run_path});
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
  const auto model = (place / "m").string();
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"info", run_path, "--json"},
           {"info", model, "--json"},
           {"info", run_path + "/models/s", "--json"},
           {"eval", model, "--text", "text \xfc.txt", "--context", "64", "--json"},
           {"generate", model, "--prompt", "the", "--max-new-tokens", "2", "--json"}}) {
    const auto finished = project_.run(arguments);
    EXPECT_EQ(finished.code, 0) << arguments[0] << arguments[1] << finished.err;
    EXPECT_FALSE(base::Json::parse(finished.out, nullptr, false).is_discarded()) << finished.out;
  }
  EXPECT_SAYS(base::read_file(project_.path(place / "run" / "stages" / "q.json")), "text \\\\xfc.txt");
}

TEST_F(StrangePlaces, APipeInPlaceOfAFileOfAModelIsRefusedAtOnce) {
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "generation_config.json",
                           "retort.json", "tokenizer_config.json"}) {
    SCOPED_TRACE(name);
    copy_model(project_, "m");
    make_pipe(fs::path("m") / name);
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"generate", "m", "--prompt", "the", "--max-new-tokens", "2"},
                                               {"info", "m"},
                                               {"eval", "m", "--text", "text.txt", "--context", "64"}}) {
      const auto finished = run_in_time(arguments);
      EXPECT_TRUE(finished.code == 4 || finished.code == 0) << arguments[0] << finished.code << finished.err;
    }
    const auto generated = run_in_time({"generate", "m", "--prompt", "the", "--max-new-tokens", "2"});
    if (name != std::string("tokenizer_config.json")) {
      EXPECT_EQ(generated.code, 4) << generated.err;
    }
    fs::remove_all(project_.path("m"));
  }
}

TEST_F(StrangePlaces, APipeOrADeviceInPlaceOfTextOrARecipeIsRefusedAtOnce) {
  copy_model(project_, "m");
  make_pipe("pipe");
  project_.write_recipe({finetune_stage("./m")});
  const std::string why = "is a pipe, expected a file";
  const auto refused = [&](const std::vector<std::string>& arguments, int code, const std::string& culprit) {
    const auto finished = run_in_time(arguments);
    EXPECT_EQ(finished.code, code) << finished.err;
    EXPECT_SAYS(finished.err, culprit);
  };
  refused({"eval", "m", "--text", "pipe"}, 3, why);
  refused({"eval", "m", "--text", "/dev/zero"}, 3, "is a device, expected a file");
  refused({"tokenize", "m", "pipe"}, 3, why);
  refused({"tokenize", "pipe", "text.txt"}, 4, why);
  refused({"info", "pipe"}, 4, "expected a GGUF file or a directory");
  refused({"run", "pipe", "--dry-run"}, 2, why);
  refused({"run", "recipe.yaml", "--set", "data.text.path=pipe", "--run-dir", "run"}, 3, why);
  refused({"run", "recipe.yaml", "--set", "data.text.path=/dev/null", "--run-dir", "run"}, 3, "is a device");
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

// retort run <(cat recipe.yaml); eval --text <(zcat text.gz)
TEST_F(StrangePlaces, WhatAnotherProgramWritesIsReadAsTextButNotAsARecipe) {
  copy_model(project_, "m");
  const auto with_pipe = [&](const std::vector<std::string>& arguments) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    const std::string text = "the package system file\n";
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
    ::close(ends[1]);
    constexpr int kNumber = 63;  // as bash has it
    const auto finished = test::run(arguments, "", project_.path(), [&] { ::dup2(ends[0], kNumber); });
    ::close(ends[0]);
    return finished;
  };
  const auto tokens = with_pipe({"tokenize", "m", "/dev/fd/63"});
  EXPECT_EQ(tokens.code, 0) << tokens.err;
  EXPECT_NE(tokens.out, "");
  const auto recipe = with_pipe({"run", "/dev/fd/63"});
  EXPECT_EQ(recipe.code, 2);
  EXPECT_SAYS(recipe.err, "write what it gives to a file, and name that");
}

TEST_F(StrangePlaces, LinksOutOfAModelDirectoryAreFollowedForNoneOfItsFiles) {
  for (const char* name :
       {"config.json", "model.safetensors", "tokenizer.json", "generation_config.json", "retort.json"}) {
    SCOPED_TRACE(name);
    copy_model(project_, "m");
    const fs::path file = project_.path("m") / name;
    fs::rename(file, project_.path("elsewhere"));
    fs::create_symlink(project_.path("elsewhere"), file);
    const auto finished = project_.run({"generate", "m", "--prompt", "the", "--max-new-tokens", "2"});
    EXPECT_EQ(finished.code, 4) << finished.err;
    EXPECT_SAYS(finished.err, "outside the model directory");
    fs::remove_all(project_.path("m"));
  }
}

}  // namespace
}  // namespace retort::test
