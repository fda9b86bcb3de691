// What a rank leaves behind, and what is told from what all have left.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/comm/flight.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using comm::FlightRecord;
using comm::RankState;

comm::CallId call(std::int64_t number, std::int64_t count = 100) {
  return {.op = static_cast<std::int32_t>(comm::Op::all_gather),
          .type = static_cast<std::int32_t>(comm::Type::f32),
          .root = 0,
          .unused = 0,
          .number = number,
          .count = count};
}

FlightRecord record(int rank, RankState state, std::int64_t alive_ms = 0, std::int64_t posted = 10) {
  FlightRecord record{.rank = rank,
                      .size = 4,
                      .process = 100 + rank,
                      .host = "node7",
                      .phase = "backward",
                      .sentence = "",
                      .step = 12,
                      .state = state,
                      .alive_ns = alive_ms * 1'000'000,
                      .failed_ns = 0,
                      .posted = posted,
                      .calls = {}};
  record.calls.push_back({.call = call(posted), .level = "world"});
  return record;
}

bool nobody_runs(const std::string&, int) {
  return false;
}

TEST(Flight, HoldsTheLastCallsStepAndPhase) {
  const test::TemporaryDirectory directory;
  {
    comm::Flight flight(comm::flight_path(directory.path(), 3), 3, 4);
    flight.at(7, "backward");
    for (std::int64_t number = 1; number <= comm::Flight::kCalls + 5; ++number)
      flight.begun(flight.posted(call(number), "shard"));
  }
  const auto records = comm::read_flights(directory.path());
  ASSERT_EQ(records.size(), 1U);
  const auto& found = records.front();
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.process, ::getpid());
  EXPECT_EQ(found.state, RankState::finished);
  EXPECT_EQ(found.step, 7);
  EXPECT_EQ(found.phase, "backward");
  EXPECT_EQ(found.posted, comm::Flight::kCalls + 5);
  ASSERT_EQ(std::ssize(found.calls), comm::Flight::kCalls);
  EXPECT_EQ(found.calls.front().call.number, 6);
  EXPECT_EQ(found.calls.back().call.number, comm::Flight::kCalls + 5);
  EXPECT_EQ(found.calls.back().state, comm::CallState::begun);
}

// While it waits for others who still work, the rank is not missed.
TEST(Flight, SaysThatItsRankHasFinishedBeforeItIsGone) {
  const test::TemporaryDirectory directory;
  const auto path = comm::flight_path(directory.path(), 0);
  comm::Flight flight(path, 0, 2);
  EXPECT_EQ(comm::read_flight(path)->state, RankState::running);
  flight.finished();
  EXPECT_EQ(comm::read_flight(path)->state, RankState::finished);
  flight.failed("too late", false);
  EXPECT_EQ(comm::read_flight(path)->state, RankState::finished);
}

TEST(Flight, OutlivesAProcessThatIsKilled) {
  const test::TemporaryDirectory directory;
  const auto path = comm::flight_path(directory.path(), 0);
  const int child = ::fork();
  if (child == 0) {
    comm::Flight flight(path, 0, 1);
    flight.at(4, "head");
    (void)flight.posted(call(9), "world");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto records = comm::read_flights(directory.path());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].state, RankState::running);
  EXPECT_EQ(records[0].calls.back().call.number, 9);
  const auto found = comm::autopsy(records);
  EXPECT_FALSE(found.clean);
  EXPECT_EQ(found.culprit, 0);
  EXPECT_NE(found.sentence.find(
                "was killed in step 4, head; its last call was all_gather of 100 f32, number 9 of 'world'"),
            std::string::npos)
      << found.sentence;
}

TEST(Flight, OfARankIsFoundWhereItCanBeRead) {
  const test::TemporaryDirectory directory;
  const comm::Flight flight(comm::flight_path(directory.path(), 2), 2, 3);
  EXPECT_EQ(comm::flight_of(directory.path(), flight.rank())->rank, 2);
  EXPECT_FALSE(comm::flight_of(directory.path(), 1));
  std::ofstream(comm::flight_path(directory.path(), 1)) << "retort";
  EXPECT_FALSE(comm::flight_of(directory.path(), 1));
}

// Whatever a disk, or somebody, has put in place of a number.
TEST(Flight, DamagedAnywhereIsLeftOutOrReadAndNeverUsedAsAnIndex) {
  const test::TemporaryDirectory directory;
  for (const int rank : {0, 1}) {
    comm::Flight flight(comm::flight_path(directory.path(), rank), rank, 2);
    flight.at(3, "forward");
    flight.begun(flight.posted(call(1), "world"));
    (void)flight.posted(call(2), "world");
    if (rank == 1) flight.failed("out of memory", true);
  }
  const auto path = comm::flight_path(directory.path(), 0);
  const auto sound = base::read_file(path);
  EXPECT_EQ(comm::damaged_flights(directory.path()), "");
  constexpr std::size_t kHeadAndTwoCalls = 680 + 2 * 72;
  std::size_t left_out = 0;
  for (std::size_t at = 0; at + 4 <= kHeadAndTwoCalls; at += 4)
    for (const std::uint32_t number : {7U, 1U << 20, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
      auto bytes = sound;
      std::memcpy(bytes.data() + at, &number, sizeof number);
      std::ofstream(path, std::ios::binary) << bytes;
      const auto records = comm::read_flights(directory.path());
      const bool damaged = comm::damaged_flights(directory.path()) == "rank-00000";
      EXPECT_EQ(records.size(), damaged ? 1U : 2U);
      left_out += damaged ? 1 : 0;
      (void)comm::autopsy(records, nobody_runs);
      for (const auto& record : records) (void)comm::last_place(record);
    }
  EXPECT_GT(left_out, 20U);
}

TEST(Flight, IsRefusedWhereItCannotBeWritten) {
  EXPECT_THROW(comm::Flight("/nowhere/rank-00000", 0, 1), base::StorageError);
}

TEST(Flight, EqualCallsOfAGroupHaveEqualHashes) {
  const test::TemporaryDirectory directory;
  {
    comm::Flight flight(comm::flight_path(directory.path(), 0), 0, 1);
    (void)flight.posted(call(1), "shard");
    (void)flight.posted(call(1), "shard");
    (void)flight.posted(call(1, 99), "shard");
    (void)flight.posted(call(1), "replica");
  }
  const auto calls = comm::read_flights(directory.path()).front().calls;
  EXPECT_EQ(calls[0].hash, calls[1].hash);
  EXPECT_NE(calls[0].hash, calls[2].hash);
  EXPECT_NE(calls[0].hash, calls[3].hash);
}

TEST(Autopsy, OfACleanJobSaysNothing) {
  const auto found =
      comm::autopsy({record(0, RankState::finished), record(1, RankState::finished)}, nobody_runs);
  EXPECT_TRUE(found.clean);
  EXPECT_EQ(found.sentence, "");
}

TEST(Autopsy, NamesTheRankThatFailedFirst) {
  auto first = record(2, RankState::failed), second = record(1, RankState::failed);
  first.failed_ns = 5;
  second.failed_ns = 9;
  first.sentence = "the disk is full.";
  const auto found = comm::autopsy({record(0, RankState::ended), second, first}, nobody_runs);
  EXPECT_EQ(found.culprit, 2);
  EXPECT_EQ(
      found.sentence,
      "rank 2 on node7 (process 102) failed in step 12, backward; its last call was all_gather of 100 f32, "
      "number 10 of 'world': the disk is full.");
}

TEST(Autopsy, NamesTheRankThatWentWithoutAWordWhileOthersMissedIt) {
  const auto found = comm::autopsy(
      {record(0, RankState::ended), record(1, RankState::running), record(2, RankState::ended)}, nobody_runs);
  EXPECT_EQ(found.culprit, 1);
  EXPECT_NE(found.sentence.find("rank 1 on node7 (process 101) was killed"), std::string::npos)
      << found.sentence;
}

// A system that lacks memory may kill several.
TEST(Autopsy, NamesTheRanksThatWentAtTheSameTime) {
  std::vector<FlightRecord> records{record(0, RankState::ended, 5600), record(1, RankState::running, 5000),
                                    record(2, RankState::running, 5050), record(3, RankState::running, 5500)};
  records[0].sentence = "rank 1 on node7 (process 101) was ended by signal 9 (Killed).";
  auto found = comm::autopsy(records, nobody_runs);
  EXPECT_EQ(found.culprit, 1);
  EXPECT_TRUE(found.sentence.ends_with("; at the same time rank 2 on node7 (process 102)."))
      << found.sentence;
  for (int rank = 4; rank < 20; ++rank) records.push_back(record(rank, RankState::running, 4950));
  found = comm::autopsy(records, nobody_runs);
  EXPECT_TRUE(found.sentence.ends_with(", rank 10 on node7 (process 110) and 9 more.")) << found.sentence;
}

TEST(Autopsy, TellsARankThatHangsFromOneThatWasKilled) {
  const auto found = comm::autopsy({record(0, RankState::ended), record(1, RankState::running)},
                                   [](const std::string&, int process) { return process == 101; });
  EXPECT_NE(found.sentence.find("hangs or was stopped"), std::string::npos) << found.sentence;
}

// A launcher kills the others a moment after the first; their hearts beat longer.
TEST(Autopsy, OfRanksThatWereAllKilledNamesTheOneWhoseHeartStoppedFirst) {
  const auto found = comm::autopsy({record(0, RankState::running, 5000), record(1, RankState::running, 4000),
                                    record(2, RankState::running, 5010)},
                                   nobody_runs);
  EXPECT_EQ(found.culprit, 1);
}

// Two lacked memory, and the launcher ended the third.
TEST(Autopsy, OfRanksThatWereAllKilledNamesTheTwoThatOthersOutlived) {
  const auto found =
      comm::autopsy({record(0, RankState::running, 5000, 11), record(1, RankState::running, 4005, 11),
                     record(2, RankState::running, 4000, 11)},
                    nobody_runs);
  EXPECT_EQ(found.culprit, 2);
  EXPECT_TRUE(found.sentence.ends_with("; at the same time rank 1 on node7 (process 101)."))
      << found.sentence;
}

TEST(Autopsy, OfRanksThatWereAllKilledAtOnceNamesTheOneThatTheOthersWaitedFor) {
  const auto found =
      comm::autopsy({record(0, RankState::running, 5000, 11), record(1, RankState::running, 5010, 11),
                     record(2, RankState::running, 5005, 10)},
                    nobody_runs);
  EXPECT_EQ(found.culprit, 2);
}

TEST(Autopsy, OfRanksThatAllHeardWhySaysWhatTheyHeard) {
  auto first = record(0, RankState::ended), second = record(1, RankState::ended);
  first.sentence = second.sentence = "rank 1 did not come to barrier of 0 bytes of 'world' within 30 s.";
  const auto found = comm::autopsy({first, second, record(2, RankState::finished)}, nobody_runs);
  EXPECT_FALSE(found.clean);
  EXPECT_EQ(found.culprit, -1);
  EXPECT_EQ(found.sentence, first.sentence);
}

// To end it, the launcher wakes a rank that was stopped; it then misses others, or is killed as they are.
TEST(Autopsy, NamesWhomTheFirstRankThatEndedMissed) {
  auto first = record(1, RankState::ended, 5000), woken = record(0, RankState::ended, 5200);
  first.failed_ns = 4;
  first.sentence = "rank 0 on node7 (process 100) hangs or was stopped in step 12, backward.";
  woken.failed_ns = 9;
  woken.sentence = "rank 2 on node7 (process 102) hangs or was stopped in step 12, backward.";
  for (const auto state : {RankState::running, RankState::ended}) {
    auto last = record(2, state, 5100);
    last.failed_ns = 12;
    const auto found = comm::autopsy({woken, first, last}, nobody_runs);
    EXPECT_EQ(found.culprit, 0);
    EXPECT_NE(found.sentence.find("rank 0 on node7 (process 100) hangs or was stopped"), std::string::npos)
        << found.sentence;
  }
}

TEST(Autopsy, GuessesNothing) {
  const auto found =
      comm::autopsy({record(0, RankState::running, 5000), record(1, RankState::running, 5010)}, nobody_runs);
  EXPECT_FALSE(found.clean);
  EXPECT_EQ(found.culprit, -1);
}

}  // namespace
}  // namespace retort
