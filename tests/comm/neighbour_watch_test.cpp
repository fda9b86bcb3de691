// Who is missed because its record does not change, and who is not.
#include "retort/comm/neighbour_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "support/temporary_directory.h"

namespace retort {
namespace {

using namespace std::chrono_literals;

constexpr double kPatience_seconds = 1.0;

// Rank 1 as another machine sees it: its record arrives from time to time, until it is stopped.
class Neighbour {
 public:
  explicit Neighbour(const std::filesystem::path& directory)
      : seen_(comm::flight_path(directory, 1)),
        flight_(comm::flight_path(own_.path(), 1), 1, 2),
        arrival_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            arrive();
            std::this_thread::sleep_for(30ms);
          }
        }) {
    while (!std::filesystem::exists(seen_)) std::this_thread::sleep_for(10ms);
  }
  void stop() { arrival_ = {}; }

 private:
  void arrive() const {
    const auto whole = own_ / "whole";
    std::filesystem::copy_file(comm::flight_path(own_.path(), 1), whole,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(whole, seen_);
  }

  test::TemporaryDirectory own_;
  std::filesystem::path seen_;
  comm::Flight flight_;
  std::jthread arrival_;
};

class NeighbourWatchTest : public testing::Test {
 protected:
  std::unique_ptr<comm::NeighbourWatch> watch() {
    flight_ = std::make_shared<comm::Flight>(comm::flight_path(directory_.path(), 0), 0, 2);
    return std::make_unique<comm::NeighbourWatch>(flight_, 1, kPatience_seconds,
                                                  [this](double seconds) { missed_seconds_ = seconds; });
  }
  bool missed_within(std::chrono::milliseconds time) const {
    for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(20ms))
      if (missed_seconds_ > 0) return true;
    return false;
  }

  test::TemporaryDirectory directory_;
  std::atomic<double> missed_seconds_ = 0;
  std::shared_ptr<comm::Flight> flight_;
};

TEST_F(NeighbourWatchTest, MissesOneThatIsStopped) {
  Neighbour neighbour(directory_.path());
  const auto watching = watch();
  ASSERT_FALSE(missed_within(1500ms));  // while it is alive
  neighbour.stop();
  ASSERT_TRUE(missed_within(20s));
  EXPECT_GE(missed_seconds_, kPatience_seconds);
}

TEST_F(NeighbourWatchTest, MissesNobodyWhoHasNoRecord) {
  const auto watching = watch();
  EXPECT_FALSE(missed_within(1500ms));
}

TEST_F(NeighbourWatchTest, MissesNobodyForTheRecordOfAnEarlierJob) {
  Neighbour(directory_.path()).stop();
  const auto watching = watch();
  EXPECT_FALSE(missed_within(1500ms));
}

TEST_F(NeighbourWatchTest, MissesNobodyWhoHasFinished) {
  const auto watching = watch();
  {
    const comm::Flight neighbour(comm::flight_path(directory_.path(), 1), 1, 2);
    std::this_thread::sleep_for(1s);
  }
  EXPECT_FALSE(missed_within(1500ms));
}

TEST_F(NeighbourWatchTest, EndsWithTheRecordOfItsOwnRank) {
  Neighbour neighbour(directory_.path());
  const auto watching = watch();
  ASSERT_FALSE(missed_within(1000ms));
  flight_.reset();
  neighbour.stop();
  EXPECT_FALSE(missed_within(1500ms));
}

}  // namespace
}  // namespace retort
