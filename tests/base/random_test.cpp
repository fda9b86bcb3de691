#include "retort/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace retort::base {
namespace {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

// The known answers that Random123 publishes for philox4x32-10.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32(Counter{}, Key{}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),  // digits of pi
      (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, TakesItsWordsFromTheBlockOfItsPosition) {
  const std::uint64_t seed = 0x299f31d0a4093822, stream = 0x0370734413198a2e, block = 0x85a308d3243f6a88 >> 1;
  Random random(seed, stream);
  random.set_position(2 * block);
  const auto words = philox4x32(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0x13198a2e, 0x03707344},
      {0xa4093822, 0x299f31d0});

  EXPECT_EQ(random.next_u64(), (std::uint64_t{words[1]} << 32) | words[0]);
  EXPECT_EQ(random.next_u64(), (std::uint64_t{words[3]} << 32) | words[2]);
  EXPECT_EQ(random.position(), 2 * block + 2);
}

TEST(Random, FirstDrawOfSeedAndStreamZeroIsTheFirstPublishedAnswer) {
  Random random(0, 0);
  EXPECT_EQ(random.next_u64(), 0xe169c58d6627e8d5);
  EXPECT_EQ(random.next_u64(), 0x9b00dbd8bc57ac4c);
}

TEST(Random, GoesOnFromASavedPosition) {
  Random whole(7, stream_of("shuffle"));
  std::vector<std::uint64_t> draws;
  for (int i = 0; i < 9; ++i) draws.push_back(whole.next_u64());
  for (std::uint64_t position = 0; position < draws.size(); ++position) {
    Random random(7, stream_of("shuffle"));
    random.set_position(position);
    EXPECT_EQ(random.next_u64(), draws[position]) << position;
  }
}

TEST(Random, StreamsAndSeedsAreDifferentNumbers) {
  std::set<std::uint64_t> first_draws;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const char* stream : {"shuffle", "mixture", "sampling"})
      first_draws.insert(Random(seed, stream_of(stream)).next_u64());
  EXPECT_EQ(first_draws.size(), 30U);
}

TEST(Random, DoublesAreInTheHalfOpenUnitInterval) {
  Random random(1, 0);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.next_double();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 1e5, 0.5, 5 * std::sqrt(1.0 / 12 / 1e5));  // five standard errors of the mean
}

TEST(Random, NumbersBelowABoundAreEquallyLikely) {
  Random random(2, 0);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.next_below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(70'000.0 * 6 / 49));
  EXPECT_EQ(random.next_below(1), 0U);
}

// 2^64 is 1.5 times this bound: of the draws in the last third, the remainders of which would come twice,
// none is used.
TEST(Random, NumbersBelowABoundThrowTheIncompleteMultipleAway) {
  const std::uint64_t bound = 0xaaaaaaaaaaaaaaaa;
  Random draws(3, 0), bounded(3, 0);
  for (int i = 0; i < 100; ++i) {
    std::uint64_t draw = draws.next_u64();
    while (draw >= bound) draw = draws.next_u64();
    EXPECT_EQ(bounded.next_below(bound), draw);
  }
  EXPECT_EQ(bounded.position(), draws.position());
}

TEST(Random, NormalsHaveMeanZeroAndVarianceOneAndTakeTwoDraws) {
  Random random(4, 0);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.next_normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_EQ(random.position(), 2U * kDraws);
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
}

TEST(Shuffle, KeepsEveryItemAndReachesEveryOrder) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  auto shuffled = items;
  Random random(5, 0);
  shuffle(shuffled, random);
  EXPECT_NE(shuffled, items);
  EXPECT_TRUE(std::is_permutation(shuffled.begin(), shuffled.end(), items.begin()));

  std::set<std::vector<int>> orders;
  for (int i = 0; i < 1000; ++i) {
    std::vector<int> three{1, 2, 3};
    shuffle(three, random);
    orders.insert(three);
  }
  EXPECT_EQ(orders.size(), 6U);
}

}  // namespace
}  // namespace retort::base
