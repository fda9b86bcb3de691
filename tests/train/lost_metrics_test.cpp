// A disk that takes no more metrics costs lines of the curve, not the training, and the observer is told.
#include <sys/resource.h>

#include <csignal>

#include "support/message_of.h"
#include "train/training.h"

namespace retort {
namespace {

/// No file of this process grows beyond so many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

using LostMetricsTest = test::TrainingTest;

TEST_F(LostMetricsTest, AreWarnedOfAtTheNextCheckpointAndTrainingGoesOn) {
  test::Given given;
  given.options = test::small_options(5);
  given.sources = {source("one", test::made_up_documents(40))};
  const auto run = place("run");
  test::Training training(given, run);
  test::Witness witness;
  std::optional<FileSizeLimit> full;
  witness.after_step = [&](std::int64_t step) {
    if (step == 1) full.emplace(std::filesystem::file_size(run / "metrics.jsonl") + 7);
    if (step == 3) full.reset();
  };

  EXPECT_TRUE(training.run(witness).finished);

  std::string steps;
  for (const auto& line : test::lines_without_clocks(run)) steps += line.at("step").dump() + " ";
  EXPECT_EQ(steps, "1 4 5 ");
  ASSERT_EQ(witness.warnings.size(), 1U);
  EXPECT_SAYS(witness.warnings[0],
              "metrics.jsonl: 2 lines were lost, writing failed: File too large; training goes on");
}

}  // namespace
}  // namespace retort
