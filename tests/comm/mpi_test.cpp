// The contract of a group, by ranks that a launcher of MPI started: each is a process with this program.
//   mpirun -n 3 comm_mpi_test 3
//   mpirun -n 3 comm_mpi_test 3 count    by which a call of the last rank differs, which ends the job
#include "comm/group_contract.h"
#include "retort/comm/flight.h"
#include "retort/comm/launch/launch.h"
#include "retort/comm/nccl/library.h"
#include "retort/comm/watchdog.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

namespace retort {
namespace {

comm::Group* world = nullptr;
int expected_ranks = 0;

class MpiContract : public testing::TestWithParam<test::Check> {};

INSTANTIATE_TEST_SUITE_P(Ranks, MpiContract, testing::ValuesIn(test::kContract),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(MpiContract, Holds) {
  GetParam().act(*world);
}

TEST(MpiWorld, HasAllRanksThatWereStarted) {
  EXPECT_EQ(world->size(), expected_ranks);
  const auto nodes = world->nodes();
  const char* per_node = std::getenv("RETORT_RANKS_PER_NODE");
  const auto machines = std::set<int>(nodes.begin(), nodes.end()).size();
  EXPECT_EQ(machines, per_node ? static_cast<std::size_t>(expected_ranks / std::atoi(per_node)) : 1U);
}

// A shard group in a machine, and the ranks with the same part elsewhere.
TEST(MpiWorld, DividesIntoMachinesAndAcrossThem) {
  const auto machine = world->split(world->node(), "machine");
  const auto across = world->split(machine->rank(), "across");
  EXPECT_EQ(machine->size() * across->size(), world->size());
  for (auto* group : {machine.get(), across.get()})
    for (const auto& check : test::kContract) {
      SCOPED_TRACE(check.name);
      check.act(*group);
    }
  EXPECT_TRUE(machine->size() == 1 || machine->common_block(64));
}

// All of the above ran on devices, where a library for them was named.
TEST(MpiWorld, UsedNothingOnADeviceBeforeItsTime) {
  for (const auto& fault : test::device::take_faults()) ADD_FAILURE() << fault;
}

class MpiLost : public testing::TestWithParam<test::OtherCall> {};

INSTANTIATE_TEST_SUITE_P(By, MpiLost, testing::ValuesIn(test::kOtherCalls),
                         [](const auto& test) { return std::string(test.param.name); });

// The job is lost by it, so this is a program run of its own.  On devices nothing is given to the library.
TEST_P(MpiLost, ByADifferentCallOfOneRankBeforeDataMoves) {
  const auto last = world->size() - 1;
  auto values = test::own_values(*world, comm::Type::f32, 4);
  const auto heard = test::message_of<base::PeerError>([&] {
    world->rank() == last ? GetParam().make(*world, values.buffer())
                          : world->all_reduce(values.buffer()).wait();
  });
  EXPECT_SAYS(heard,
              base::join("all_reduce of 4 f32 on rank 0 and ", GetParam().described, " on rank ", last));
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(values.get(i), test::value_of(world->rank(), i));
}

constexpr const char* kPatience = "RETORT_PATIENCE_SECONDS";

// A launcher may give a variable to the ranks of its own machine alone.
bool withhold_patience() {
  const char* open_mpi = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* rank = open_mpi ? open_mpi : std::getenv("PMI_RANK");
  const bool watched = std::getenv(kPatience) != nullptr;
  if (rank && std::atoi(rank) > 0) ::unsetenv(kPatience);
  return watched;
}

TEST(MpiWorld, HasThePatienceOfItsFirstRank) {
  auto first = std::to_string(comm::least_patience_seconds());
  world->share(first);
  EXPECT_EQ(first, std::to_string(comm::least_patience_seconds()));
}

// Each rank is watched by the one before while they end one after the other: none may be missed for that.
class Watched {
 public:
  Watched() {
    std::string path;
    if (world->rank() == 0) path = directory_.emplace().path();
    world->share(path);
    world->job().record(
        std::make_shared<comm::Flight>(comm::flight_path(path, world->rank()), world->rank(), world->size()));
  }
  void end_late() const {
    if (world->rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(5));
  }

 private:
  std::optional<test::TemporaryDirectory> directory_;
};

// Only the first rank is heard; the others speak up where something is wrong.
class OnlyFailures final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", world->rank(), result.file_name(), result.line_number(),
                   result.summary());
  }
};

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  expected_ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  GTEST_FLAG_SET(filter, argc > 2 ? base::join("By/MpiLost.*/", argv[2]) : "-*MpiLost.*");
  const bool is_watched = withhold_patience();
  std::optional<Watched> watched;  // its directory outlives the group
  const auto group = comm::world_group();
  world = group.get();
  if (group->rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new OnlyFailures);
  }
  if (std::getenv("RETORT_NCCL")) {
    test::device_of_values = comm::Device::accelerator;
    test::device::set_current_device(group->rank());
    group->job().set_accelerator(std::make_shared<test::TestAccelerator>(group->rank()),
                                 comm::nccl::library());
  }
  // Ranks that were not started would let every check pass.
  if (group->size() != expected_ranks) {
    std::fprintf(stderr, "expected %d ranks, found %d\n", expected_ranks, group->size());
    return 1;
  }
  if (is_watched) watched.emplace();
  const int result = RUN_ALL_TESTS();
  if (watched) watched->end_late();
  return result;
}

}  // namespace
}  // namespace retort

int main(int argc, char** argv) {
  return retort::run(argc, argv);
}
