#include "retort/ops/block_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace retort {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kAll = std::numeric_limits<std::size_t>::max();

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void* touched(ops::BlockPool& pool, std::size_t bytes) {
  return std::memset(pool.take(bytes), 1, bytes);
}

TEST(BlockPool, PiecesThatTouchServeABlockOfTheirSum) {
  ops::BlockPool pool;
  auto* const first = touched(pool, 10 * kMiB);
  auto* const second = touched(pool, 6 * kMiB);
  auto* const last = touched(pool, 2 * kMiB);  // what follows is not free
  EXPECT_EQ(pool.give(first, kAll), 10 * kMiB);
  EXPECT_EQ(pool.give(second, kAll), 6 * kMiB);
  EXPECT_EQ(pool.take(16 * kMiB), first);
  EXPECT_EQ(pool.waiting_bytes(), 0);
  EXPECT_EQ(pool.give(last, kAll), 2 * kMiB);
}

TEST(BlockPool, TakesTheSmallestHoleThatHasMemory) {
  ops::BlockPool pool;
  std::vector<void*> blocks;
  for (const std::size_t size : {8, 1, 4, 1, 6, 1}) blocks.push_back(touched(pool, size * kMiB));
  for (const std::size_t i : {0, 2, 4}) pool.give(blocks[i], kAll);
  EXPECT_EQ(pool.take(5 * kMiB), blocks[4]);
  EXPECT_EQ(pool.take(3 * kMiB), blocks[2]);
}

TEST(BlockPool, ABlockLargerThanTheLastHoleGrowsFromIt) {
  ops::BlockPool pool;
  touched(pool, kMiB);
  auto* const hole = touched(pool, 10 * kMiB);
  pool.give(hole, kAll);
  EXPECT_EQ(pool.take(30 * kMiB), hole);
}

TEST(BlockPool, GivesMemoryBackBeyondWhatMayWait) {
  ops::BlockPool pool;
  auto* const kept = touched(pool, kMiB);
  auto* const big = touched(pool, 200 * kMiB);
  auto* const end = touched(pool, kMiB);
  const auto before = resident_bytes();
  pool.give(big, 20 * kMiB);
  EXPECT_LE(pool.waiting_bytes(), 20 * kMiB);
  EXPECT_LT(resident_bytes() - before, -std::int64_t{170 * kMiB});
  std::memset(pool.take(200 * kMiB), 2, 200 * kMiB);
  EXPECT_EQ(*static_cast<char*>(kept) + *static_cast<char*>(end), 2);
}

TEST(BlockPool, BlocksAndWhatWaitsKeepTheLimit) {
  ops::BlockPool pool;
  auto* const first = touched(pool, 100 * kMiB);
  touched(pool, kMiB);
  pool.give(first, kAll);
  pool.limit(170 * kMiB);
  touched(pool, 120 * kMiB);
  EXPECT_LE(pool.in_use_bytes() + pool.waiting_bytes(), 170 * kMiB);
}

TEST(BlockPool, KnowsWhatIsNotItsOwn) {
  ops::BlockPool pool;
  pool.take(kMiB);
  int local = 0;
  EXPECT_EQ(pool.give(&local, kAll), 0);
}

// Each block is filled with its number, and must still have it when it is given back.
void take_and_give(ops::BlockPool& pool, unsigned seed, std::size_t most_waiting_bytes) {
  std::mt19937 random(seed);
  struct Block {
    unsigned char* memory;
    std::size_t size;
    unsigned char number;
  };
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (blocks.size() < 8 || (blocks.size() < 40 && random() % 2 == 0)) {
      const std::size_t size = 1 + random() % (random() % 8 == 0 ? 8 * kMiB : kMiB / 4);
      auto* const memory = static_cast<unsigned char*>(pool.take(size));
      const auto number = static_cast<unsigned char>(random());
      std::memset(memory, number, size);
      blocks.push_back({memory, size, number});
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto block = blocks.back();
      blocks.pop_back();
      for (std::size_t at = 0; at < block.size; at += 4093) ASSERT_EQ(block.memory[at], block.number);
      ASSERT_EQ(block.memory[block.size - 1], block.number);
      ASSERT_EQ(pool.give(block.memory, most_waiting_bytes), block.size);
    }
  }
  for (const auto& block : blocks) pool.give(block.memory, most_waiting_bytes);
}

TEST(BlockPool, BlocksNeverOverlap) {
  ops::BlockPool pool;
  take_and_give(pool, 1, kAll);
  EXPECT_EQ(pool.in_use_bytes(), 0);
  take_and_give(pool, 2, 4 * kMiB);
  std::jthread first([&] { take_and_give(pool, 3, 16 * kMiB); });
  take_and_give(pool, 4, 16 * kMiB);
  first.join();
  EXPECT_EQ(pool.in_use_bytes(), 0);
}

TEST(BlockPool, WorksWhereAddressesAreLimited) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0;
  in >> pages;
  const auto taken = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  rlimit limited{taken + 512 * kMiB, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  ops::BlockPool pool;
  touched(pool, 100 * kMiB);
  take_and_give(pool, 5, 4 * kMiB);
  EXPECT_THROW(pool.take(1024 * kMiB), std::bad_alloc);
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
}

}  // namespace
}  // namespace retort
