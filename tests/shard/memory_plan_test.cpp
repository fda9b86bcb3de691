// What a plan adds up, says and refuses; tests/train compares it with what is allocated.
#include "retort/shard/memory_plan.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/reference_model.h"

namespace retort {
namespace {

shard::MemoryShape shape() {
  return {.student = test::config_of(test::Shape{}),
          .micro_batch_tokens = 64,
          .sequence_tokens = 32,
          .micro_batches = 3,
          .wave = 2,
          .wave_tokens = 128};
}

TEST(MemoryPlan, NamesEveryItemOfItsTotal) {
  const auto plan = shard::plan_memory(shape());
  std::int64_t sum = 0;
  for (const auto& item : plan.items) {
    EXPECT_GT(item.bytes, 0) << item.what;
    EXPECT_SAYS(shard::describe(plan), item.what);
    sum += item.bytes;
  }
  EXPECT_EQ(plan.total_bytes(), sum);
}

// One gradient of each block's output in a wave; a second loss needs room for one micro-batch's beside it.
TEST(MemoryPlan, CountsGradientsOfLossesOnHiddenStates) {
  const auto bytes = [](std::int64_t losses) {
    auto with = shape();
    with.hidden_losses = losses;
    return shard::plan_memory(with).total_bytes();
  };
  constexpr std::int64_t kBlocks = 3, kWaveTokens = 2 * 64, kHidden = 24, kFloat = 4;
  EXPECT_EQ(bytes(1) - bytes(0), kBlocks * kWaveTokens * kHidden * kFloat);
  EXPECT_EQ(bytes(2) - bytes(1), 64 * kHidden * kFloat);
  EXPECT_EQ(bytes(3), bytes(2));
}

TEST(MemoryPlan, IsRefusedWithItsTableAndAdviceWhereItDoesNotFit) {
  const auto plan = shard::plan_memory(shape());
  EXPECT_NO_THROW(shard::require_fits(plan, plan.total_bytes()));
  const auto message =
      test::message_of<base::MemoryError>([&] { shard::require_fits(plan, plan.total_bytes() - 1); });
  EXPECT_SAYS(message, plan.advice);
  EXPECT_SAYS(message, shard::describe(plan));
}

// What the advice says must be true of the least number that it names.
TEST(MemoryPlan, NamesTheRanksThatWouldFit) {
  auto wider = shape();
  wider.ranks = wider.student_ranks = wider.teacher_ranks = 4;
  const auto available = shard::plan_memory(wider).total_bytes();
  EXPECT_SAYS(shard::plan_memory_within(shape(), available).advice,
              "start 4 ranks with as much memory each and set shard: {student_ranks: 4} in the stage");
  EXPECT_SAYS(shard::plan_memory_within(shape(), available - 1).advice, "start 8 ranks");
  const auto enough = shard::plan_memory(shape()).total_bytes();
  EXPECT_EQ(shard::plan_memory_within(shape(), enough).advice, shard::MemoryPlan().advice);
  EXPECT_EQ(shard::plan_memory_within(shape(), 1).advice, shard::MemoryPlan().advice) << "no number would do";
}

// Ranks that hold a copy each need no others: they share the copies among themselves.
TEST(MemoryPlan, NamesTheLayoutInWhichThePresentRanksWouldFit) {
  const auto teacher = test::config_of(test::Shape{});
  auto replicated = shape();
  replicated.teacher = &teacher;
  replicated.ranks = 4;
  auto sharded = replicated;
  sharded.student_ranks = sharded.teacher_ranks = 4;
  const auto available = shard::plan_memory(sharded).total_bytes();
  const auto advice = shard::plan_memory_within(replicated, available).advice;
  EXPECT_SAYS(advice, ", or set shard: {student_ranks: 4, teacher_ranks: 4} in the stage");
  EXPECT_EQ(advice.find("start"), advice.npos) << advice;
  for (const auto& present : {replicated, sharded})
    EXPECT_SAYS(
        shard::plan_memory_within(present, available - 1).advice,
        ", or start 8 ranks with as much memory each and set shard: {student_ranks: 8, teacher_ranks: "
        "8} in the stage");
}

// Two ranks of one memory read each other's parts in place; ranks of several gather the unit at hand and the
// next.
TEST(MemoryPlan, CountsWhatIsGathered) {
  auto together = shape();
  together.ranks = together.student_ranks = together.ranks_of_memory = 2;
  auto apart = together;
  apart.ranks_of_memory = 1;
  EXPECT_EQ(shard::plan_memory(together).bytes_of("gathered units"), 0);
  const auto units = architecture::make_layout(apart.student).units;
  std::int64_t most = 0;
  for (std::size_t i = 1; i < units.size(); ++i) most = std::max(most, units[i - 1].size + units[i].size);
  EXPECT_EQ(shard::plan_memory(apart).bytes_of("gathered units"), most * apart.item_bytes);
  apart.path = ops::Path::device;
  EXPECT_GT(shard::plan_memory(apart).bytes_of("gradients that wait to be added"), 0);
}

TEST(MemoryPlan, ChoosesRowsOfTheHeadByVocabularyAndType) {
  EXPECT_EQ(shard::choose_head_rows(32000, 4096, 4, ops::Path::cpu), 512);    // 2^24 / 32000 = 524
  EXPECT_EQ(shard::choose_head_rows(32000, 4096, 2, ops::Path::cpu), 1024);   // 2^25 / 32000 = 1048
  EXPECT_EQ(shard::choose_head_rows(1000000, 4096, 4, ops::Path::cpu), 128);  // never fewer
  EXPECT_EQ(shard::choose_head_rows(256, 4096, 4, ops::Path::cpu), 1024);     // never more
  EXPECT_EQ(shard::choose_head_rows(256, 96, 4, ops::Path::cpu), 96);         // than a micro-batch has
  EXPECT_EQ(shard::choose_head_rows(32000, 8192, 2, ops::Path::cuda), 4160);  // 2^27 / 32000 = 4194
}

}  // namespace
}  // namespace retort
