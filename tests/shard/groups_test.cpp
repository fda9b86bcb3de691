// How many ranks a shard group has, and which numbers are refused.
#include "retort/shard/groups.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/comm/recorded/recorded_group.h"
#include "support/message_of.h"
#include "support/ranks.h"

namespace retort::shard {
namespace {

RankCounts counts(int ranks, int of_machine) {
  const auto world = comm::recorded_group(std::make_shared<comm::Recording>(),
                                          {.rank = 0, .size = ranks, .ranks_per_node = of_machine});
  return count_ranks(*world, at::kCPU);
}

std::string refusal(const RankCounts& ranks, std::int64_t asked) {
  return test::message_of<base::UsageError>([&] { (void)shard_size(ranks, asked); });
}

TEST(ShardSize, IsThatOfAMachineOrWhatIsAsked) {
  EXPECT_EQ(shard_size(counts(12, 4), 0), 4);
  for (const int asked : {1, 2, 4, 12}) EXPECT_EQ(shard_size(counts(12, 4), asked), asked);
  EXPECT_EQ(shard_size(counts(1, 1), 4), 1);
}

TEST(ShardSize, HasToDivide) {
  EXPECT_SAYS(refusal(counts(12, 4), 5), "shard groups of 5 ranks do not divide 12 ranks");
  EXPECT_SAYS(refusal(counts(12, 4), 3), "shard groups of 3 ranks lie across machines of 4 ranks");
  EXPECT_SAYS(refusal(counts(12, 4), 6), "use a divisor or a multiple of that number");
}

// The memory of a machine is divided among its ranks in any case.
TEST(RankCounts, SayHowManyRanksHoldOneCopyBetweenThem) {
  for (const bool common : {true, false})
    test::on_ranks(
        3,
        [&](comm::Group& world) {
          const auto counts = count_ranks(world, at::kCPU);
          EXPECT_EQ(counts.of_memory, 3);
          EXPECT_EQ(counts.of_common_memory, common ? 3 : 1);
          EXPECT_EQ(count_ranks(world, at::kCUDA).of_common_memory, 1);
        },
        common);
}

TEST(ShardSize, NeedsMachinesWithAsManyRanks) {
  EXPECT_SAYS(
      refusal(counts(3, 2), 0),
      "expected as many ranks on every machine, found 1 on one and 2 on another; start the same number on "
      "each.");
}

}  // namespace
}  // namespace retort::shard
