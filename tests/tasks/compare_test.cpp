#include "retort/tasks/compare.h"

#include "tasks/files_for_tests.h"

namespace retort::tasks {
namespace {

// A task of many documents with two choices, of which the first is right.
PreparedTask many(std::size_t count) {
  const TaskFolder folder;
  std::string rows;
  for (std::size_t i = 0; i < count; ++i)
    rows += "{\"q\": \"x\", \"choices\": [\"a\", \"b\"], \"gold\": 0}\n";
  return prepared(folder, choice_task("metric_list: [{metric: acc}]\n"), rows);
}

// Right in the documents from `first` on, `right` of them.
TaskScores scores_of(const PreparedTask& task, std::size_t first, std::size_t right) {
  std::vector<std::vector<Answer>> answers;
  for (std::size_t i = 0; i < task.documents.size(); ++i) {
    const bool is_right = i >= first && i < first + right;
    answers.push_back({{is_right ? -1.0 : -2.0, false, ""}, {-1.5, false, ""}});
  }
  return score(task, answers);
}

TEST(TaskComparison, GivesRecoveryAndItsIntervals) {
  const auto task = many(400);
  const auto comparisons = compare(task, scores_of(task, 0, 300), scores_of(task, 0, 320));

  ASSERT_EQ(comparisons.size(), 1U);
  const auto& one = comparisons[0];
  EXPECT_DOUBLE_EQ(*one.recovery.value, 300.0 / 320);
  EXPECT_DOUBLE_EQ(*one.above_chance.value, 100.0 / 120);
  EXPECT_DOUBLE_EQ(*one.chance, 0.5);
  // 20 of 400 documents differ, so a standard error of the ratio is about sqrt(20) / 320 = 0.014.
  EXPECT_NEAR(*one.recovery.low, 300.0 / 320 - 1.96 * 0.0136, 0.004);
  EXPECT_NEAR(*one.recovery.high, 300.0 / 320 + 1.96 * 0.0136, 0.004);
  EXPECT_LT(*one.above_chance.low, *one.above_chance.value);
}

TEST(TaskComparison, IsTheSameEachTime) {
  const auto task = many(50);
  const auto student = scores_of(task, 0, 30), teacher = scores_of(task, 3, 45);

  EXPECT_EQ(to_json(compare(task, student, teacher)), to_json(compare(task, student, teacher)));
}

TEST(TaskComparison, TestsDiscordantDocuments) {
  const auto task = many(40);
  const auto one = compare(task, scores_of(task, 0, 10), scores_of(task, 8, 9)).at(0);  // 8 and 7 alone

  EXPECT_EQ(one.mcnemar->student_only, 8);
  EXPECT_EQ(one.mcnemar->teacher_only, 7);
  EXPECT_NEAR(one.mcnemar->p_value, 1, 1e-12);
  const auto other = compare(task, scores_of(task, 0, 0), scores_of(task, 0, 6)).at(0);
  EXPECT_NEAR(other.mcnemar->p_value, 2.0 / 64, 1e-12);
}

TEST(TaskComparison, HasNoRecoveryWhereTheTeacherIsNotAboveChance) {
  const auto task = many(40);
  const auto one = compare(task, scores_of(task, 0, 18), scores_of(task, 0, 20)).at(0);

  EXPECT_TRUE(one.recovery.value);
  EXPECT_FALSE(one.above_chance.value);
  EXPECT_EQ(one.above_chance.reason, "the teacher is not above chance");
  const auto json = to_json({one});
  EXPECT_TRUE(json[0].at("recovery_above_chance").at("value").is_null());
  const auto none = compare(task, scores_of(task, 0, 18), scores_of(task, 0, 0)).at(0);
  EXPECT_EQ(none.recovery.reason, "the teacher has no answer right");
}

TEST(TaskComparison, HasNoIntervalOfFewDocumentsOrNearChance) {
  const auto few = many(7);
  const auto near = many(40);

  EXPECT_EQ(compare(few, scores_of(few, 0, 5), scores_of(few, 0, 6)).at(0).recovery.reason,
            "there are fewer than 8 documents");
  EXPECT_EQ(compare(near, scores_of(near, 0, 20), scores_of(near, 0, 22)).at(0).above_chance.reason,
            "the teacher is too near to chance for an interval");
}

TEST(TaskComparison, RefusesOtherDocuments) {
  const auto one = many(20), other = many(21);

  EXPECT_SAYS(test::message_of<base::DataError>(
                  [&] { (void)compare(one, scores_of(one, 0, 3), scores_of(other, 0, 3)); }),
              "the teacher on 21; judge both on the same");
}

}  // namespace
}  // namespace retort::tasks
