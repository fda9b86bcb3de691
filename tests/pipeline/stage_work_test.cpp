#include "retort/pipeline/stage_work.h"

#include <gtest/gtest.h>

#include "retort/architecture/counts.h"
#include "support/message_of.h"
#include "support/models_for_tests.h"

namespace retort::pipeline {
namespace {

TEST(StageWork, OfTrainingIsItsStepsAndItsHeldOutLosses) {
  const auto student = test::tiny_config(), teacher = test::tiny_config(4);
  train::TrainOptions options;
  options.tokens = 1000;
  options.packing.sequence_length = 64;
  options.batch = {.sequences = 2, .accumulate = 2};
  options.evaluate_every_steps = 0;
  options.recompute = train::Recompute::never;
  const auto forward = [](const architecture::Config& config) {
    return architecture::flops_per_token(config, 64);
  };
  const auto alone = training_work(options, student, nullptr, 3, c10::kFloat);
  EXPECT_SAYS(alone.sentence, "1.0 k tokens in 4 steps");
  EXPECT_DOUBLE_EQ(alone.least_flops, 1024 * 3 * forward(student)) << "forward, and two products backward";
  EXPECT_DOUBLE_EQ(alone.most_flops, alone.least_flops);
  const auto taught = training_work(options, student, &teacher, 3, c10::kFloat);
  EXPECT_DOUBLE_EQ(taught.least_flops, alone.least_flops + 1024 * forward(teacher));
  options.recompute = train::Recompute::always;
  EXPECT_DOUBLE_EQ(training_work(options, student, nullptr, 3, c10::kFloat).most_flops,
                   1024 * 4 * forward(student));
  options.evaluate_every_steps = 2;
  options.evaluate_tokens = 100;
  EXPECT_DOUBLE_EQ(training_work(options, student, nullptr, 3, c10::kFloat).least_flops,
                   alone.least_flops + 3 * 3 * 100 * forward(student));
}

TEST(StageWork, SaysWhatTheStudentWrites) {
  const auto student = test::tiny_config();
  train::TrainOptions options;
  options.tokens = 1024;
  options.packing.sequence_length = 64;
  options.batch = {.sequences = 2, .accumulate = 2};
  const auto without = training_work(options, student, &student, 1, c10::kFloat);
  options.on_policy = {.share = 0.5, .max_new_tokens = 20, .prompt_tokens = 10};

  const auto work = training_work(options, student, &student, 1, c10::kFloat);

  EXPECT_SAYS(work.sentence, "in 4 steps, of which the student writes up to 320 tokens");
  EXPECT_GT(work.most_flops, without.most_flops);
  EXPECT_DOUBLE_EQ(work.least_flops, without.least_flops);
}

TEST(StageWork, OfScoresNeedsTheirTokens) {
  const std::vector models{test::tiny_config(), test::tiny_config(4)};
  eval::EvaluateOptions options{.context = 64, .tokens = 500};
  const auto work = scoring_work(options, models, 2);
  ASSERT_TRUE(work);
  EXPECT_DOUBLE_EQ(work->most_flops, 1000 * (architecture::flops_per_token(models[0], 64) +
                                             architecture::flops_per_token(models[1], 64)));
  options.tokens = 0;
  EXPECT_FALSE(scoring_work(options, models, 2)) << "all of the text, which is unread";
}

}  // namespace
}  // namespace retort::pipeline
