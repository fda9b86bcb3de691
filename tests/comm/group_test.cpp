// The contract of a group, by a group of one and by threads that share memory.
#include "comm/group_contract.h"
#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/flight.h"
#include "retort/comm/lead.h"
#include "retort/comm/nccl/library.h"
#include "retort/comm/recorded/recorded_group.h"
#include "support/message_of.h"
#include "support/ranks.h"
#include "support/temporary_directory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>

namespace retort {
namespace {

struct Backend {
  const char* name;
  int ranks;
  void (*run)(int ranks, const std::function<void(comm::Group&)>& act);
  bool has_others = true;  ///< the other ranks are somewhere
};

void run_single(int, const std::function<void(comm::Group&)>& act) {
  act(*comm::single_group());
}

void run_apart(int ranks, const std::function<void(comm::Group&)>& act) {
  test::on_ranks(ranks, act, false);
}

// The same, of memory that the processor cannot touch, each rank on a device of its own: moved by `library`,
// or copied where there is none.
void on_devices(int ranks, void (*run)(int, const std::function<void(comm::Group&)>&),
                const std::shared_ptr<const comm::nccl::Library>& library,
                const std::function<void(comm::Group&)>& act) {
  test::device_of_values = comm::Device::accelerator;
  run(ranks, [&](comm::Group& group) {
    test::device::set_current_device(group.rank());
    group.job().set_accelerator(std::make_shared<test::TestAccelerator>(group.rank()), library);
    act(group);
  });
  test::device_of_values = comm::Device::cpu;
  for (const auto& fault : test::device::take_faults()) ADD_FAILURE() << fault;
}

template <void (*run)(int, const std::function<void(comm::Group&)>&)>
void copied(int ranks, const std::function<void(comm::Group&)>& act) {
  on_devices(ranks, run, nullptr, act);
}

void by_nccl(int ranks, const std::function<void(comm::Group&)>& act) {
  on_devices(ranks, test::on_ranks, comm::nccl::library(), act);
}

// As one rank after the other, since none waits for another.
void run_recorded(int ranks, const std::function<void(comm::Group&)>& act) {
  for (int rank = 0; rank < ranks; ++rank)
    act(*comm::recorded_group(
        std::make_shared<comm::Recording>(),
        {.rank = rank, .size = ranks, .color = [](std::string_view, int of) { return of % 2; }}));
}

// A new backend is a line here.
constexpr Backend kBackends[] = {{"Single", 1, run_single},
                                 {"Shared1", 1, test::on_ranks},
                                 {"Shared2", 2, test::on_ranks},
                                 {"Shared3", 3, test::on_ranks},
                                 {"Shared4", 4, test::on_ranks},
                                 {"Apart3", 3, run_apart},
                                 {"SingleCopied", 1, copied<run_single>},
                                 {"SharedCopied3", 3, copied<test::on_ranks>},
                                 {"Nccl1", 1, by_nccl},
                                 {"Nccl2", 2, by_nccl},
                                 {"Nccl3", 3, by_nccl},
                                 {"Nccl4", 4, by_nccl},
                                 {"Recorded1", 1, run_recorded},
                                 {"Recorded2", 2, run_recorded, false},
                                 {"Recorded3", 3, run_recorded, false},
                                 {"Recorded4", 4, run_recorded, false}};

using Case = std::tuple<Backend, test::Check>;
class GroupContract : public testing::TestWithParam<Case> {};

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& backend : kBackends)
    for (const auto& check : test::kContract)
      if (backend.has_others || !check.needs_others) cases.emplace_back(backend, check);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupContract, testing::ValuesIn(cases()), [](const auto& test) {
  return std::string(std::get<0>(test.param).name) + std::get<1>(test.param).name;
});

TEST_P(GroupContract, Holds) {
  const auto& [backend, check] = GetParam();
  backend.run(backend.ranks, check.act);
}

using comm::Group;

TEST(SharedGroup, ADifferentCallOnOneRankIsFoundBeforeDataMoves) {
  for (const auto& other : test::kOtherCalls) {
    SCOPED_TRACE(other.name);
    float values[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    const auto heard = test::message_of<base::PeerError>([&] {
      test::on_ranks(2, [&](Group& group) {
        const comm::Buffer own{values[group.rank()], 4, comm::Type::f32};
        group.rank() == 0 ? group.all_reduce(own).wait() : other.make(group, own);
      });
    });
    EXPECT_SAYS(heard, base::join("all_reduce of 4 f32 on rank 0 and ", other.described, " on rank 1"));
    EXPECT_SAYS(heard, "nothing was moved");
    EXPECT_EQ(values[0][0], 1);
    EXPECT_EQ(values[1][0], 5);
  }
}

TEST(SharedGroup, AnAbortEndsTheWaitOfOthersWithItsSentence) {
  std::string heard;
  test::on_ranks(3, [&](Group& group) {
    if (group.rank() == 1) {
      group.job().abort("rank 1: the disk is full.");
    } else {
      try {
        group.barrier();
      } catch (const base::PeerError& error) {
        if (group.rank() == 0) heard = error.what();
        return;
      }
      ADD_FAILURE() << "the barrier ended without rank 1";
    }
  });
  EXPECT_EQ(heard, "rank 1: the disk is full.");
}

void take_off(Group& group, const std::filesystem::path& directory) {
  group.job().record(
      std::make_shared<comm::Flight>(comm::flight_path(directory, group.rank()), group.rank(), group.size()));
}

TEST(SharedGroup, ARankThatDoesNotComeInTimeIsNamedWithItsPlace) {
  const test::TemporaryDirectory directory;
  std::vector<std::string> heard(3);
  test::on_ranks(3, [&](Group& group) {
    take_off(group, directory.path());
    group.job().at(7, "student, backward");
    group.job().set_patience(0.3);
    group.barrier();
    if (group.rank() == 1) return;
    try {
      group.barrier();
    } catch (const base::PeerError& error) {
      heard[static_cast<std::size_t>(group.rank())] = error.what();
    }
  });
  EXPECT_SAYS(heard[0], "rank 1 did not come to barrier of 0 bytes of 'world' within");
  EXPECT_SAYS(heard[0], base::join("; rank 1 on ", base::host_name(),
                                   " was in step 7, student, backward; its last call was barrier of 0 bytes, "
                                   "number 1 of 'world'; start"));
  EXPECT_EQ(heard[0], heard[2]);
}

TEST(SharedGroup, SaysWhereARankIs) {
  const test::TemporaryDirectory directory;
  test::on_ranks(2, [&](Group& group) {
    EXPECT_EQ(group.job().place(group.rank()), base::join("rank ", group.rank()));
    take_off(group, directory.path());
    group.job().at(7, "student, backward");
    const auto part = group.split(group.rank(), "shard");
    part->barrier();
    EXPECT_EQ(part->job().place(part->rank()), group.job().place(group.rank()));
    EXPECT_EQ(group.job().place(group.rank()),
              base::join("rank ", group.rank(), " on ", base::host_name(), " (process ", ::getpid(),
                         ") in step 7, student, backward; its last call was barrier of 0 bytes, number 1 of "
                         "'shard'"));
  });
}

TEST(SharedGroup, OneRankHasTheLastWords) {
  std::atomic<int> speakers = 0;
  test::on_ranks(3, [&](Group& group) {
    if (group.job().claim_last_words()) ++speakers;
  });
  EXPECT_EQ(speakers, 1);
}

// Children that stand still or are gone; the arena is in common with them.
TEST(Arena, KnowsWhoIsAwake) {
  const auto arena = comm::Arena::create();
  EXPECT_EQ(arena->first_awake(), -1);
  int children[2];
  for (int rank = 0; rank < 2; ++rank) {
    children[rank] = ::fork();
    ASSERT_GE(children[rank], 0);
    if (children[rank] == 0) {
      ::alarm(60);
      arena->join(rank, 10 + rank);
      for (;;) ::pause();
    }
    for (int tries = 0; tries < 5000 && arena->name_of(rank) != 10 + rank; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto wait_for = [&](int rank, int expected) {
    for (int tries = 0; tries < 5000 && arena->first_awake() != expected; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(arena->first_awake(), expected) << rank;
  };
  wait_for(0, 0);
  ::kill(children[0], SIGSTOP);
  wait_for(0, 1);
  const int all[] = {0, 1};
  EXPECT_EQ(arena->stopped(all).value().local_rank, 0);
  EXPECT_EQ(arena->stopped(all).value().sentence,
            base::join("rank 10 on ", base::host_name(), " (process ", children[0], ") is stopped"));
  EXPECT_FALSE(arena->missing(all));
  ::kill(children[1], SIGKILL);
  ::waitpid(children[1], nullptr, 0);
  wait_for(1, -1);
  EXPECT_EQ(arena->missing(all).value().local_rank, 1);
  ::kill(children[0], SIGKILL);
  ::waitpid(children[0], nullptr, 0);
}

// A disk that was full for a checkpoint says nothing about how the job ends later.
TEST(SharedGroup, WhatAllHaveDealtWithIsNoFailureOfTheJob) {
  const test::TemporaryDirectory directory;
  test::on_ranks(2, [&](Group& group) {
    take_off(group, directory.path());
    const auto full = [&] {
      if (group.rank() == 1) throw base::StorageError("the disk is full.");
    };
    EXPECT_THROW(group.agree(full), base::StorageError);
    EXPECT_TRUE(group.failed_together());
    group.recovered();
    EXPECT_FALSE(group.failed_together());
    group.barrier();
  });
  EXPECT_TRUE(comm::autopsy(comm::read_flights(directory.path())).clean);
}

// An allocation that fails in one rank is told to all by what to do, and not as a bug of Retort.
TEST(SharedGroup, ARankWithoutMemoryIsAnErrorOfAll) {
  test::on_ranks(3, [](Group& group) {
    const auto short_of_memory = [&] {
      if (group.rank() == 1) throw std::bad_alloc();
    };
    try {
      group.agree(short_of_memory);
      ADD_FAILURE() << "no error in rank " << group.rank();
    } catch (const base::MemoryError& error) {
      EXPECT_SAYS(std::string(error.what()), "rank 1: out of memory");
    }
    group.recovered();
    group.barrier();
  });
}

// A plan that no rank can hold is nobody's own fault.
TEST(SharedGroup, RanksThatAllLackMemoryNameNone) {
  test::on_ranks(2, [](Group& group) {
    const auto refused = [] { throw base::MemoryError("a step needs 9 GB."); };
    try {
      group.agree(refused);
      ADD_FAILURE() << "no error in rank " << group.rank();
    } catch (const base::MemoryError& error) {
      EXPECT_STREQ(error.what(), "a step needs 9 GB.");
    }
  });
}

TEST(SharedGroup, RankZeroActsForAll) {
  std::atomic<int> acted = 0;
  test::on_ranks(3, [&](Group& group) {
    comm::lead(group, [&] { ++acted; });
    EXPECT_EQ(acted, 1) << "all go on when it has ended";
    EXPECT_EQ(comm::led(group, [&] { return "rank " + std::to_string(group.rank()); }), "rank 0");
    EXPECT_THROW(comm::lead(group, [] { throw base::StorageError("the disk is full."); }),
                 base::StorageError);
    group.recovered();
    group.barrier();
  });
}

TEST(SharedGroup, AgreementWaitsAsLongAsItTakes) {
  test::on_ranks(2, [](Group& group) {
    group.job().set_patience(0.2);
    group.agree([&] {
      if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(700));
    });
  });
}

TEST(SharedGroup, CommonMemoryGoesBackWhenItsLastRankIsDone) {
  const auto arena = comm::Arena::create();
  const auto offset = arena->take(1 << 20);
  arena->at(offset)[5] = std::byte{7};
  arena->give_back(offset, 1 << 20);
  EXPECT_EQ(arena->at(offset)[5], std::byte{0});
  EXPECT_NE(arena->take(1), offset);
}

}  // namespace
}  // namespace retort
