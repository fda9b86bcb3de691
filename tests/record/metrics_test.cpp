#include "retort/record/metrics.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <limits>
#include <string>

#include "retort/base/error.h"
#include "support/faulty_files.h"
#include "support/message_of.h"

namespace retort::record {
namespace {

using base::Json;

class MetricsFile : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        base::Path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    path_ = directory_ / "metrics.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  base::Path directory_;
  base::Path path_;
};

Json line(const std::string& stage, int step) {
  return {{"stage", stage}, {"step", step}, {"loss", 0.5 * step}};
}

TEST_F(MetricsFile, KeepsWhatWasAppended) {
  {
    Metrics metrics(path_);
    metrics.append(line("a", 1));
    metrics.append({{"stage", "a"}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  }
  Metrics(path_).append(line("b", 1));

  const auto lines = read_metrics(path_);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], line("a", 1));
  EXPECT_TRUE(lines[1]["loss"].is_null());
  EXPECT_EQ(lines[2]["stage"], "b");
  EXPECT_EQ(base::read_file(path_).substr(0, 33), "{\"stage\":\"a\",\"step\":1,\"loss\":0.5}");
}

TEST_F(MetricsFile, DropsALastLineThatWasCutOff) {
  for (const std::string& torn : {std::string("{\"stage\":\"a\",\"st"), std::string(10'000, 'x')}) {
    std::ofstream(path_) << "{\"stage\":\"a\",\"step\":1}\n" << torn;
    Metrics(path_).append(line("a", 2));

    const auto lines = read_metrics(path_);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[1]["step"], 2);
  }
}

TEST_F(MetricsFile, DropsOnlyLaterStepsOfTheStage) {
  Metrics metrics(path_);
  for (int step = 1; step <= 4; ++step) metrics.append(line("a", step));
  for (int step = 1; step <= 4; ++step) metrics.append(line("b", step));

  metrics.drop_after("b", 2);
  metrics.append(line("b", 3));

  std::string steps;
  for (const auto& one : read_metrics(path_))
    steps += one["stage"].get<std::string>() + one["step"].dump() + " ";
  EXPECT_EQ(steps, "a1 a2 a3 a4 b1 b2 b3 ");

  metrics.drop_after("a", -1);
  EXPECT_EQ(read_metrics(path_).size(), 3U);
}

TEST_F(MetricsFile, KeepsLinesThatAreNoneOfOurs) {
  std::ofstream(path_) << "a note\n{\"stage\":\"a\",\"step\":5}\n{\"mine\":\n[1]\n{\"my\":\"object\"}\n";
  Metrics metrics(path_);
  metrics.drop_after("a", 2);
  EXPECT_EQ(base::read_file(path_), "a note\n{\"mine\":\n[1]\n{\"my\":\"object\"}\n");
}

TEST_F(MetricsFile, ReadsLinesAsLongAsTheyWereWritten) {
  Metrics metrics(path_);
  auto long_line = line("a", 1);
  long_line["text"] = std::string(std::size_t{3} << 20, 'x');
  metrics.append(long_line);
  ASSERT_EQ(read_metrics(path_).size(), 1U);
}

// What is written anew would else lack the lines that could not be read.
TEST_F(MetricsFile, ThatCannotBeReadIsNoEmptyOne) {
  const auto path = directory_ / "lines";
  std::filesystem::create_directory(path);
  EXPECT_SAYS(test::message_of<base::StorageError>([&] { (void)read_metrics(path); }),
              "is a directory, expected a file");
}

TEST_F(MetricsFile, LeavesDamagedLinesOutWhenReading) {
  std::ofstream(path_) << "{\"step\":1}\n{\"step\":\n[1]\n\n{\"step\":2}\n";

  int objects = 0;
  EXPECT_EQ(for_each_metric(path_, [&](const base::Json&) { ++objects; }), 3);
  EXPECT_EQ(objects, 2);
  EXPECT_EQ(for_each_metric(directory_ / "absent.jsonl", [](const base::Json&) { FAIL(); }), 0);
}

/// Keeps the warnings.
struct Warnings : Observer {
  void message(Level level, std::string_view text) override {
    if (level == Level::warning) warnings.emplace_back(text);
  }
  std::vector<std::string> warnings;
};

TEST_F(MetricsFile, TellsOfLinesThatDoNotFitAndLeavesNoHalfLine) {
  Metrics metrics(path_);
  Warnings observer;
  metrics.sync(observer);
  EXPECT_TRUE(observer.warnings.empty());
  metrics.append(line("a", 1));
  const auto size = std::filesystem::file_size(path_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{size + 7, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  metrics.append(line("a", 2));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  metrics.append(line("a", 3));

  metrics.sync(observer);
  ASSERT_EQ(observer.warnings.size(), 1U);
  EXPECT_NE(observer.warnings[0].find("metrics.jsonl: 1 line was lost, writing failed: File too large; "),
            std::string::npos)
      << observer.warnings[0];
  const auto lines = read_metrics(path_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1]["step"], 3);
}

TEST_F(MetricsFile, HasWholeLinesAndEveryLineBeforeWhicheverCallFails) {
  Observer observer;
  const auto steps = [&] {
    std::string text;
    for (const auto& one : read_metrics(path_)) text += one["step"].dump();
    return text;
  };
  const int faults = test::for_each_fault(
      directory_,
      [&] {
        std::filesystem::remove(path_);
        Metrics metrics(path_);
        for (const int step : {1, 2, 3}) metrics.append(line("a", step));
      },
      [&] {
        Metrics metrics(path_);
        metrics.drop_after("a", 2);
        for (const int step : {4, 5}) metrics.append(line("a", step));
        metrics.sync(observer);
      },
      [&] {
        const auto found = steps();
        EXPECT_TRUE(found == "123" || found == "12" || found == "1245" || found == "124" || found == "125")
            << found;
      });
  EXPECT_GT(faults, 12);
}

TEST_F(MetricsFile, KeepsWhatWasSyncedWhenThePowerGoes) {
  Observer observer;
  test::for_each_power_loss(
      directory_,
      [&] {
        Metrics metrics(path_);
        for (const int step : {1, 2, 3}) metrics.append(line("a", step));
      },
      [&] {
        Metrics metrics(path_);
        metrics.drop_after("a", 2);
        metrics.append(line("a", 4));
        metrics.sync(observer);
      },
      [&](bool done) {
        const auto lines = read_metrics(path_);
        ASSERT_GE(lines.size(), 2U);
        EXPECT_EQ(lines[1]["step"], 2);
        if (done) {
          EXPECT_EQ(lines.back()["step"], 4);
        }
      });
}

TEST_F(MetricsFile, TellsOnceOfAllLinesThatAFullDiskTook) {
  std::filesystem::create_symlink("/dev/full", path_);
  Metrics metrics(path_);
  Warnings observer;
  for (int step = 1; step <= 3; ++step) metrics.append(line("a", step));
  metrics.sync(observer);
  metrics.sync(observer);

  ASSERT_EQ(observer.warnings.size(), 1U);
  EXPECT_NE(observer.warnings[0].find("3 lines were lost, writing failed: No space left on device"),
            std::string::npos)
      << observer.warnings[0];
}

TEST_F(MetricsFile, NamesTheCauseWhenItCannotBeOpened) {
  EXPECT_THROW(Metrics(directory_ / "no" / "metrics.jsonl"), base::StorageError);
}

}  // namespace
}  // namespace retort::record
