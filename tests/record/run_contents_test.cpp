#include "retort/record/run_contents.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/temporary_directory.h"

namespace retort::record {
namespace {

class RunContentsTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    base::make_directories((directory_ / name).parent_path());
    base::write_file_atomically(directory_ / name, content);
  }
  RunContents read() const { return read_run(directory_.path()); }

  test::TemporaryDirectory directory_;
};

TEST_F(RunContentsTest, HoldsTheStagesInRecipeOrderThenWhatElseHasResultsOrMetrics) {
  write("recipe.yaml", "version: 1\n");
  write("recipe.json", R"({"stages": {"b": {"kind": "train"}, "a": {"kind": "select"}}})");
  write("provenance.json", R"({"starts": [1]})");
  write("stages/a.json", R"({"kind": "select", "tokens": 3})");
  write("stages/a.1.json", R"({"kind": "distill"})");
  write("stages/a.documents.jsonl", "{}\n");
  write("metrics.jsonl", "{\"stage\": \"b\", \"step\": 1, \"loss\": 2}\n{\"stage\": \"a.2\", \"step\": 4}\n");

  const auto run = read();

  EXPECT_EQ(run.name, directory_.path().filename());
  EXPECT_EQ(run.recipe_text, "version: 1\n");
  EXPECT_EQ(run.provenance["starts"].size(), 1U);
  std::string stages;
  for (const auto& stage : run.stages) stages += stage.name + ":" + stage.kind + " ";
  EXPECT_EQ(stages, "b:train a:select a.1:distill a.2: ");
  EXPECT_TRUE(run.stages[0].result.is_null());
  EXPECT_EQ(run.stages[0].metrics.at(0).loss, 2.0);
  EXPECT_EQ(run.stages[1].result["tokens"], 3);
  EXPECT_TRUE(run.notes.empty());
}

TEST_F(RunContentsTest, NotesWhatCannotBeReadAndGoesOn) {
  write("recipe.json", R"({"stages": )");
  write("stages/a.json", "[");
  write("metrics.jsonl", "{\"stage\": \"b\", \"step\": 1}\n{\"stage\": oops}\n{\"stage\": \"b\", \"st");

  const auto run = read();

  ASSERT_EQ(run.notes.size(), 3U);
  EXPECT_EQ(run.notes[0].rfind("recipe.json is left out: ", 0), 0U) << run.notes[0];
  EXPECT_EQ(run.notes[1].rfind("a.json is left out: ", 0), 0U) << run.notes[1];
  EXPECT_EQ(run.notes[2], "metrics.jsonl: 1 unreadable lines are left out.");
  ASSERT_EQ(run.stages.size(), 1U);
  EXPECT_EQ(run.stages[0].metrics.size(), 1U);
}

TEST_F(RunContentsTest, LeavesOutAResultWhoseChecksumDoesNotFit) {
  write("stages/a.json", R"({"kind": "train", "steps": 3, "checksum": "0"})");
  const auto run = read();
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_EQ(run.notes[0], "a.json is left out: its checksum does not fit.");
  EXPECT_TRUE(run.stages.empty());
}

TEST_F(RunContentsTest, LeavesOutLinesAfterTheFirstMillion) {
  std::string lines;
  for (int i = 0; i < 1'000'003; ++i) lines += "{\"stage\":\"s" + std::to_string(i % 1000) + "\"}\n";
  write("metrics.jsonl", lines);
  const auto run = read();
  EXPECT_EQ(run.stages.size(), 1000U);
  EXPECT_EQ(run.stages[2].metrics.size(), 1000U);
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_EQ(run.notes[0], "metrics.jsonl: 3 lines after the first 1000000 are left out.");
}

TEST_F(RunContentsTest, LeavesOutMetricsThatCannotBeRead) {
  write("recipe.json", R"({"stages": {"a": {"kind": "train"}}})");
  std::filesystem::create_symlink("/proc/self/mem", directory_.path() / "metrics.jsonl");
  const auto run = read();
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_EQ(run.notes[0].rfind("metrics.jsonl is left out: ", 0), 0U) << run.notes[0];
  EXPECT_EQ(run.stages.size(), 1U);
}

TEST_F(RunContentsTest, ReadsARunOfAnEarlierVersionWithoutWhatItDoesNotTell) {
  write("metrics.jsonl",
        "{\"stage\": \"s\", \"step\": 2, \"tokens\": 64, \"loss\": 2.5, \"cross_entropy\": 2.5, "
        "\"gradient_norm\": 1}\n");
  const auto run = read();
  const auto& line = run.stages.at(0).metrics.at(0);
  EXPECT_EQ(line.step, 2);
  EXPECT_EQ(line.loss, 2.5);
  EXPECT_EQ(line.gradient_norm, 1.0);
  EXPECT_TRUE(line.parts.empty());
}

TEST_F(RunContentsTest, IsNothingInAnEmptyDirectoryAndAnErrorWithoutOne) {
  EXPECT_TRUE(read().stages.empty());
  EXPECT_THROW(read_run(directory_ / "absent"), base::StorageError);
}

}  // namespace
}  // namespace retort::record
