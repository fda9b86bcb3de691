// A stage that was stopped or killed and started again ends with the bits of one that never was.
#include <stdexcept>

#include "retort/base/files.h"
#include "retort/data/windows.h"
#include "retort/train/batches.h"
#include "support/faulty_files.h"
#include "support/message_of.h"
#include "train/training.h"

namespace retort {
namespace {

using test::Training;
using test::Witness;

constexpr std::int64_t kSteps = 7;

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

class ResumeTest : public test::TrainingTest {
 protected:
  test::Given given(at::ScalarType dtype) const {
    test::Given given;
    given.dtype = dtype;
    given.masked = true;
    given.options = test::small_options(kSteps);
    given.options.checkpoint_every_steps = 3;
    given.options.evaluate_every_steps = 2;
    given.options.optim.weight_decay = 0.01;
    given.sources = {source("one", test::made_up_documents(40)), source("two", test::made_up_documents(9))};
    return given;
  }

  std::vector<train::HeldOutSet> held_out(const test::Given& given) const {
    data::WindowReader reader(given.sources[1], data::Split::all, {.context = 32, .tokens = 100},
                              given.encode, test::kSpecial);
    std::vector<data::Sequence> windows;
    for (data::Sequence window; reader.next(window);) windows.push_back(window);
    return {{"two", train::make_micro_batches(windows, 2, at::kCPU)}};
  }

  void run_to_the_end(const test::Given& given, const base::Path& directory) const {
    Training training(given, directory);
    Witness witness;
    const auto outcome = training.run(witness, held_out(given));
    ASSERT_TRUE(outcome.finished);
    ASSERT_EQ(outcome.progress.step, kSteps);
  }

  void stop_after(std::int64_t step, const test::Given& given, const base::Path& directory) const {
    Training training(given, directory);
    Witness witness;
    witness.stop_after = step;
    const auto outcome = training.run(witness, held_out(given));
    ASSERT_FALSE(outcome.finished);
    ASSERT_EQ(outcome.progress.step, step);
  }

  void kill_after(std::int64_t step, const test::Given& given, const base::Path& directory) const {
    Training training(given, directory);
    Witness witness;
    witness.after_step = [&](std::int64_t done) {
      if (done == step) throw Killed();
    };
    ASSERT_THROW((void)training.run(witness, held_out(given)), Killed);
  }

  static std::string state(const base::Path& run) {
    return base::read_file(run / "checkpoints" / "step-00000007" / "state.safetensors");
  }
  static base::Json manifest(const base::Path& run) {
    auto json = base::parse_json(base::read_file(run / "checkpoints" / "step-00000007" / "manifest.json"));
    json.erase("seconds");
    json.erase("checksum");
    return json;
  }
  // Master weights and moments byte for byte, the cursor, and each step's line once and equal.
  static void expect_same_run(const base::Path& a, const base::Path& b) {
    EXPECT_TRUE(state(a) == state(b));
    EXPECT_EQ(manifest(a), manifest(b));
    EXPECT_EQ(test::lines_without_clocks(a), test::lines_without_clocks(b));
  }

  void expect_stopping_changes_nothing(at::ScalarType dtype) const {
    const auto given = this->given(dtype);
    const auto straight = place("straight");
    run_to_the_end(given, straight);
    ASSERT_EQ(test::lines_without_clocks(straight).size(), kSteps + 1);  // and one before the first step
    for (const std::int64_t step : {1, 3, 5, 6}) {
      SCOPED_TRACE(testing::Message() << "stopped after step " << step);
      const auto stopped = place("stopped-" + std::to_string(step));
      stop_after(step, given, stopped);
      run_to_the_end(given, stopped);
      expect_same_run(straight, stopped);
    }
  }
};

TEST_F(ResumeTest, StoppingChangesNoBitInFloat32) {
  expect_stopping_changes_nothing(at::kFloat);
}
TEST_F(ResumeTest, StoppingChangesNoBitInBfloat16) {
  expect_stopping_changes_nothing(at::kBFloat16);
}

TEST_F(ResumeTest, StoppingTwiceChangesNoBit) {
  const auto given = this->given(at::kFloat);
  const auto straight = place("straight"), stopped = place("stopped");
  run_to_the_end(given, straight);
  stop_after(2, given, stopped);
  stop_after(5, given, stopped);
  run_to_the_end(given, stopped);
  expect_same_run(straight, stopped);
}

TEST_F(ResumeTest, BeingKilledBetweenCheckpointsRepeatsStepsWithTheSameBits) {
  const auto given = this->given(at::kFloat);
  const auto straight = place("straight");
  run_to_the_end(given, straight);
  for (const std::int64_t step : {1, 5}) {  // before the first checkpoint, and two steps after it
    SCOPED_TRACE(testing::Message() << "killed after step " << step);
    const auto killed = place("killed-" + std::to_string(step));
    kill_after(step, given, killed);
    run_to_the_end(given, killed);
    expect_same_run(straight, killed);
  }
}

// The metrics file has its own warning of a disk that cannot sync.
std::vector<std::string> of_checkpoints(const std::vector<std::string>& warnings) {
  std::vector<std::string> found;
  for (const auto& warning : warnings)
    if (warning.find("without a checkpoint") != std::string::npos) found.push_back(warning);
  return found;
}

TEST_F(ResumeTest, AFullDiskAtACheckpointDoesNotEndTraining) {
  const auto given = this->given(at::kFloat);
  const auto straight = place("straight"), full = place("full");
  run_to_the_end(given, straight);
  std::optional<test::FaultyFileSystem> disk;
  Training training(given, full);
  Witness witness;
  witness.after_step = [&](std::int64_t step) {
    disk.reset();
    if (step == 6) disk.emplace().cannot(test::Call::sync, ENOSPC);  // somebody makes room afterwards
    if (step == 7) {
      EXPECT_TRUE(std::filesystem::exists(full / "checkpoints" / "step-00000003"));
    }
  };
  EXPECT_TRUE(training.run(witness, held_out(given)).finished);
  const auto warnings = of_checkpoints(witness.warnings);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_SAYS(warnings[0],
              "stage: training goes on without a checkpoint of step 6, the next is written after step 7");
  EXPECT_SAYS(warnings[0], "No space left on device");
  expect_same_run(straight, full);
}

TEST_F(ResumeTest, AFullDiskAtTheLastCheckpointIsAnError) {
  const auto given = this->given(at::kFloat);
  const auto straight = place("straight"), full = place("full");
  run_to_the_end(given, straight);
  {
    std::optional<test::FaultyFileSystem> disk;
    Training training(given, full);
    Witness witness;
    witness.after_step = [&](std::int64_t step) {
      if (step == 6) disk.emplace().cannot(test::Call::sync, ENOSPC);
    };
    const auto message =
        test::message_of<base::StorageError>([&] { (void)training.run(witness, held_out(given)); });
    EXPECT_SAYS(message, "No space left on device");
    EXPECT_EQ(of_checkpoints(witness.warnings).size(), 1U);
  }
  run_to_the_end(given, full);  // from step 3
  expect_same_run(straight, full);
}

TEST_F(ResumeTest, AFinishedStageIsNotTrainedFurther) {
  const auto given = this->given(at::kFloat);
  const auto run = place("run");
  run_to_the_end(given, run);
  Training again(given, run);
  Witness witness;
  const auto outcome = again.run(witness, held_out(given));
  EXPECT_TRUE(outcome.finished);
  EXPECT_TRUE(witness.reports.empty());
}

}  // namespace
}  // namespace retort
