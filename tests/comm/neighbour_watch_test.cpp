// Who is missed because its record does not change, and who is not.
#include "retort/comm/neighbour_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>

#include "support/temporary_directory.h"

namespace retort {
namespace {

using namespace std::chrono_literals;

constexpr double kPatience_seconds = 0.6;

// A process that is rank 1, until it is killed.
class Neighbour {
 public:
  explicit Neighbour(const std::filesystem::path& directory) : process_(::fork()) {
    const auto file = comm::flight_path(directory, 1);
    while (process_ != 0 && !std::filesystem::exists(file)) std::this_thread::sleep_for(10ms);
    if (process_ != 0) return;
    const comm::Flight flight(file, 1, 2);
    while (true) std::this_thread::sleep_for(1s);
  }
  ~Neighbour() { end(); }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  void signal(int number) const { ::kill(process_, number); }
  void end() {
    if (process_ <= 0) return;
    signal(SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_;
};

class NeighbourWatchTest : public testing::Test {
 protected:
  // Called once the neighbour is there: its process is not to be made while threads run.
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
  const Neighbour neighbour(directory_.path());
  const auto watching = watch();
  ASSERT_FALSE(missed_within(1500ms));  // while it is alive
  neighbour.signal(SIGSTOP);
  ASSERT_TRUE(missed_within(20s));
  EXPECT_GE(missed_seconds_, kPatience_seconds);
}

TEST_F(NeighbourWatchTest, MissesNobodyWhoHasNoRecord) {
  const auto watching = watch();
  EXPECT_FALSE(missed_within(1500ms));
}

TEST_F(NeighbourWatchTest, MissesNobodyForTheRecordOfAnEarlierJob) {
  Neighbour(directory_.path()).end();
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
  const Neighbour neighbour(directory_.path());
  const auto watching = watch();
  ASSERT_FALSE(missed_within(1000ms));
  flight_.reset();
  neighbour.signal(SIGSTOP);
  EXPECT_FALSE(missed_within(1500ms));
}

}  // namespace
}  // namespace retort
