// A group whose other ranks are nowhere: what it notes, what it leaves in buffers, and its clock.
#include "retort/comm/recorded/recorded_group.h"

#include <gtest/gtest.h>

#include <array>

#include "retort/base/error.h"
#include "support/message_of.h"

namespace retort::comm {
namespace {

// Twelve ranks on three machines of four.
RecordedRank sixth() {
  return {.level = "world", .rank = 6, .size = 12, .ranks_per_node = 4, .color = [](auto level, int rank) {
            return level == "shard" ? rank / 4 : rank % 4;
          }};
}

TEST(RecordedGroup, NotesEveryCallAndMovesNothing) {
  const auto recording = std::make_shared<Recording>();
  const auto world = recorded_group(recording, sixth());
  const float own[2] = {3, 4};
  std::array<float, 24> all;
  all.fill(7);
  world->all_gather({own, 2, Type::f32}, {all.data(), 24, Type::f32}).wait();
  std::array<float, 24> expected = {};
  expected[12] = 3;
  expected[13] = 4;
  EXPECT_EQ(all, expected);
  // In place too.
  all.fill(7);
  all[12] = 3, all[13] = 4;
  world->all_gather({&all[12], 2, Type::f32}, {all.data(), 24, Type::f32}).wait();
  EXPECT_EQ(all, expected);
  float part[2] = {};
  world->reduce_scatter({all.data(), 24, Type::f32}, {part, 2, Type::f32}).wait();
  EXPECT_EQ(part[0], 3);
  double sum[1] = {5};
  world->all_sum(sum);
  EXPECT_EQ(sum[0], 5);
  world->barrier();
  // An accelerator's memory is not touched, wherever it is.
  world
      ->all_gather({nullptr, 1000, Type::bf16, Device::accelerator},
                   {nullptr, 12000, Type::bf16, Device::accelerator})
      .wait();
  const auto& calls = recording->calls();
  ASSERT_EQ(calls.size(), 6U);
  EXPECT_EQ(described(calls[0].id), "all_gather of 2 f32");
  EXPECT_EQ(calls[0].moved_bytes, 11 * 8);
  EXPECT_EQ(described(calls[2].id), "reduce_scatter of 24 f32");
  EXPECT_EQ(calls[2].moved_bytes, 11 * 8);
  EXPECT_EQ(calls[3].moved_bytes, 11 * 8);
  EXPECT_EQ(calls[4].moved_bytes, 0);
  EXPECT_EQ(calls[5].moved_bytes, 11 * 2000);
  EXPECT_EQ(calls[5].level, "world");
  EXPECT_EQ(calls[5].id.number, 6);
  EXPECT_EQ(world->log().counts().size(), 5U);
}

TEST(RecordedGroup, ARingReceivesAllButItsOwnPart) {
  EXPECT_EQ(ring_bytes(Op::all_gather, 4096, 4), 3072);
  EXPECT_EQ(ring_bytes(Op::reduce_scatter, 4096, 4), 3072);
  EXPECT_EQ(ring_bytes(Op::all_reduce, 4096, 4), 6144);
  EXPECT_EQ(ring_bytes(Op::broadcast, 4096, 4), 3072);
  EXPECT_EQ(ring_bytes(Op::barrier, 0, 4), 0);
  for (const auto op : {Op::all_gather, Op::all_reduce, Op::broadcast}) EXPECT_EQ(ring_bytes(op, 4096, 1), 0);
}

TEST(RecordedGroup, SplitsAsItsRuleSays) {
  const auto recording = std::make_shared<Recording>();
  const auto world = recorded_group(recording, sixth());
  EXPECT_EQ(world->nodes(), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  const auto shard = world->split(1, "shard"), replica = world->split(2, "replica");
  EXPECT_EQ(shard->rank(), 2);
  EXPECT_EQ(shard->size(), 4);
  EXPECT_EQ(shard->level(), "shard");
  EXPECT_EQ(shard->nodes(), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(replica->rank(), 1);
  EXPECT_EQ(replica->size(), 3);
  EXPECT_EQ(replica->nodes(), (std::vector<int>{0, 1, 2}));
  EXPECT_SAYS(test::message_of<base::InternalError>([&] { (void)world->split(0, "shard"); }), "color");
  shard->barrier();
  EXPECT_EQ(recording->calls().at(0).level, "shard");
}

// A call takes 0.5 s and 2 s for each 1000 bytes that come.
TEST(RecordedGroup, KeepsTheTimeThatLinksWouldTake) {
  const auto recording = std::make_shared<Recording>(
      std::map<std::string, Link, std::less<>>{{"world", {.latency_seconds = 0.5, .bytes_per_second = 500}}});
  const auto world = recorded_group(recording, {.rank = 0, .size = 2});
  const Buffer none{nullptr, 1000, Type::bytes, Device::accelerator};
  const Buffer both{nullptr, 2000, Type::bytes, Device::accelerator};
  auto first = world->all_gather(none, both), second = world->all_gather(none, both);
  recording->compute(2);
  first.wait();  // 2.5 s after it began
  EXPECT_DOUBLE_EQ(recording->now_seconds(), 2.5);
  EXPECT_DOUBLE_EQ(recording->waited_seconds(), 0.5);
  recording->compute(4);  // beside the second, which began when the first ended
  second.wait();
  EXPECT_DOUBLE_EQ(recording->now_seconds(), 6.5);
  EXPECT_DOUBLE_EQ(recording->waited_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(recording->calls().at(1).begin_seconds, 2.5);
  const auto counts = world->log().counts();
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_DOUBLE_EQ(counts[0].seconds, 5);
  EXPECT_DOUBLE_EQ(counts[0].exposed_seconds, 0.5);
}

}  // namespace
}  // namespace retort::comm
