// What happens to the outputs of finished stages between two starts.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

void flip_a_bit(const fs::path& path, std::size_t at, bool keep_time) {
  const auto time = fs::last_write_time(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const auto byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  fs::last_write_time(path, keep_time ? time : time + std::chrono::seconds(1));
}

class FinishedStages : public testing::Test {
 protected:
  void SetUp() override {
    project_.write_recipe({train_stage(256), finetune_stage("born")});
    const Finished first = project_.run_recipe({"--stage", "born"});
    ASSERT_EQ(first.code, 0) << first.err;
  }
  void finish() {
    const Finished finished = project_.run_recipe();
    ASSERT_EQ(finished.code, 0) << finished.err;
  }
  void expect_refused(const std::string& culprit, const std::vector<std::string>& more = {}) {
    const auto before = files_below(project_.path("run/models"));
    const Finished refused = project_.run_recipe(more);
    EXPECT_EQ(refused.code, 4) << refused.err;
    EXPECT_SAYS(refused.err, culprit);
    EXPECT_SAYS(refused.err, "restore it, or remove run/stages/");
    EXPECT_TRUE(files_below(project_.path("run/models")) == before);
  }
  fs::path weights() const { return project_.path("run/models/born/model.safetensors"); }

  TinyProject project_;
};

TEST_F(FinishedStages, OfWhichABitFlippedAreNotGoneOnFrom) {
  const auto end = fs::file_size(weights()) - 2;
  flip_a_bit(weights(), end, /*keep_time=*/false);
  expect_refused("stage 'tuned': run: models/born/model.safetensors has changed since stage 'born' made it",
                 {"--dry-run"});
  expect_refused("models/born/model.safetensors has changed since stage 'born' made it");
  flip_a_bit(weights(), end, /*keep_time=*/false);  // as it was, but for its time
  finish();
}

TEST_F(FinishedStages, OfWhichABitFlippedUnderTheSameTimeAreNotGoneOnFrom) {
  flip_a_bit(weights(), fs::file_size(weights()) - 2, /*keep_time=*/true);
  expect_refused("models/born/model.safetensors has changed since stage 'born' made it");
}

TEST_F(FinishedStages, WhoseModelIsGoneAreNotGoneOnFrom) {
  fs::remove_all(project_.path("run/models/born"));
  expect_refused("models/born/", {"--dry-run"});
  expect_refused("is gone since stage 'born' made it");
  fs::remove(project_.path("run/stages/born.json"));
  finish();  // made again, from its last checkpoint
}

TEST_F(FinishedStages, OfAFinishedRunThatLostAModelAreNamed) {
  finish();
  const auto tuned = weights_of(project_.path("run"), "tuned");
  fs::remove_all(project_.path("run/models/tuned"));
  expect_refused("is gone since stage 'tuned' made it");
  expect_refused("is gone since stage 'tuned' made it", {"--dry-run"});
  fs::remove(project_.path("run/stages/tuned.json"));
  finish();
  EXPECT_EQ(weights_of(project_.path("run"), "tuned"), tuned);
}

// Models that no later stage takes may make room.
TEST_F(FinishedStages, WhoseModelNobodyTakesAnyMoreAreWarnedOf) {
  finish();
  fs::remove_all(project_.path("run/models/born"));
  project_.write_recipe(
      {train_stage(256), finetune_stage("born"),
       "{name: scores, kind: evaluate, models: [tuned], data: [text], context: 64, tokens: 256}"});
  const Finished finished = project_.run_recipe();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.err, "is gone since stage 'born' made it");
}

TEST_F(FinishedStages, WhoseLogsAreDamagedLoseTheLogs) {
  for (const char* log : {"run/stages/born.json", "run/provenance.json", "run/inputs.json"}) {
    SCOPED_TRACE(log);
    flip_a_bit(project_.path(log), fs::file_size(project_.path(log)) / 2, /*keep_time=*/false);
  }
  project_.write("run/provenance.json", "{\"starts\": [{");
  const Finished finished = project_.run_recipe();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.err, "run/stages/born.json");
  EXPECT_SAYS(finished.err, "run/provenance.json: byte ");
  EXPECT_SAYS(finished.err, "stage born: finished before");
  EXPECT_EQ(project_.run({"info", "run"}).code, 0);
}

TEST_F(FinishedStages, OfARunThatWasMovedAreTaken) {
  fs::copy(project_.path("run"), project_.path("moved"), fs::copy_options::recursive);
  fs::remove_all(project_.path("run"));
  fs::rename(project_.path("moved"), project_.path("run"));
  finish();
}

}  // namespace
}  // namespace retort::test
