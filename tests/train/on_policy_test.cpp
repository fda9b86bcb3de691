// A student that learns from what it writes: losses as TRL computes them, and steps that do not depend on
// where they are made.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "retort/base/error.h"
#include "retort/model/packed_text.h"
#include "support/message_of.h"
#include "support/oracle_case.h"
#include "support/ranks.h"
#include "support/tolerance.h"
#include "train/training.h"

namespace retort {
namespace {

using test::Training;
using test::Witness;

// The models' numbers are float32 and the oracle computes in float64.
constexpr double kLikeTheTrainer = 1e-4;

loss::LossOptions loss_of(const base::Json& json) {
  loss::LossOptions options;
  for (const auto& traits : loss::kLossTraits)
    if (traits.name == json.at("kind").get<std::string>()) options.kind = traits.kind;
  options.beta = json.value("beta", options.beta);
  options.temperature = json.at("temperature");
  if (json.value("direction", "forward") == "reverse") options.direction = loss::KlDirection::reverse;
  return options;
}

std::vector<data::Sequence> sequences_of_trainer(const base::Json& expected, std::int64_t length) {
  std::vector<eval::Generation> texts;
  for (const auto& text : expected.at("texts"))
    texts.push_back({.ids = text.at("ids"), .prompt_tokens = text.at("prompt_tokens")});
  return train::packed_texts(texts, length);
}

TEST(OnPolicyLosses, AreThoseOfTheTrainerOnTheSameTexts) {
  const auto folder = test::oracles("on_policy");
  const auto expected = test::json_file(folder / "expected.json");
  const auto sequences = sequences_of_trainer(expected, 40);
  ASSERT_GT(sequences.size(), 1U);
  ASSERT_GT(std::ranges::max(sequences, {}, [](const auto& s) { return s.starts.size(); }).starts.size(), 1U);
  for (const auto& json : expected.at("cases")) {
    SCOPED_TRACE(json.dump());
    const auto options = loss_of(json);
    const auto student = shard::resident_parameters(
        model::load_weights(folder / "student", at::kFloat, at::kCPU), shard::Use::trained, at::kFloat);
    const auto teacher = shard::resident_parameters(
        model::load_weights(folder / "teacher", at::kFloat, at::kCPU), shard::Use::frozen, at::kFloat);
    shard::ModelTeacher taught_by(*teacher);
    // On text there is cross-entropy beside it; here there is none of that.
    const auto losses = loss::make_losses({{}, options}, {});
    const auto on_written = loss::make_losses(loss::losses_on_written_text({{}, options}), {});
    const auto group = comm::single_group();
    shard::PhaseClock clock;
    shard::Engine engine(*student, &taught_by, losses, *group, clock, {.wave = 2}, &on_written);
    auto batches = train::make_micro_batches(sequences, 1, at::kCPU);
    for (auto& batch : batches) batch.written = true;

    const auto result = engine.step(batches);

    EXPECT_TRUE(result.parts.empty());
    ASSERT_EQ(result.written_parts.size(), 1U);
    EXPECT_EQ(result.written_targets, result.targets);
    EXPECT_NEAR(result.loss, json.at("loss"), kLikeTheTrainer);
    EXPECT_NEAR(result.written_parts.begin()->second, json.at("loss"), kLikeTheTrainer);
    double squares = 0;
    for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit)
      squares += student->own_gradient(unit).square().sum(at::kDouble).item<double>();
    const double norm = json.at("gradient_norm");
    EXPECT_NEAR(std::sqrt(squares), norm, kLikeTheTrainer * norm);
  }
}

class OnPolicyTest : public test::TrainingTest {
 protected:
  static constexpr std::int64_t kSteps = 6;

  test::Given given() const {
    test::Given given;
    given.options = test::small_options(kSteps);
    given.options.on_policy = {.share = 0.5, .max_new_tokens = 9, .prompt_tokens = 6};
    given.options.checkpoint_every_steps = 2;
    given.sources = {source("one", test::made_up_documents(40)), source("two", test::made_up_documents(9))};
    return given;
  }

  std::string hash_of_run(const test::Given& given, const std::string& name) const {
    Training training(given, place(name));
    Witness witness;
    EXPECT_TRUE(training.run(witness).finished);
    return training.weights_hash();
  }
};

TEST_F(OnPolicyTest, CountsWhatWasWritten) {
  const auto given = this->given();
  const auto run = place("run");
  Training training(given, run);
  Witness witness;

  const auto outcome = training.run(witness);

  ASSERT_TRUE(outcome.result.written);
  const auto& written = *outcome.result.written;
  EXPECT_EQ(written.texts, kSteps * 2 * 2);  // two sequences a step, with two texts each
  EXPECT_GT(written.ended, 0);
  EXPECT_LT(written.ended, written.texts);
  EXPECT_LE(written.tokens, 9 * written.texts);
  EXPECT_GT(written.seconds, 0);
  double tokens = 0;
  for (const auto& line : record::read_metrics(run / "metrics.jsonl")) {
    tokens += line.at("written").at("tokens").get<double>();
    EXPECT_EQ(line.at("written").at("texts"), 4.0);
    EXPECT_TRUE(line.at("parts").contains("cross_entropy"));
    EXPECT_TRUE(line.at("parts").contains("squarehead"));
    EXPECT_EQ(line.at("written_parts").size(), 1U);
    EXPECT_TRUE(line.at("written_parts").contains("kl_divergence"));
    EXPECT_TRUE(line.at("phase_seconds").contains("writing"));
  }
  EXPECT_EQ(tokens, static_cast<double>(written.tokens));
  for (const auto& report : witness.reports) {
    ASSERT_TRUE(report.writing_fraction);
    EXPECT_GT(*report.writing_fraction, 0);
    EXPECT_LT(*report.writing_fraction, 1);
  }
  EXPECT_EQ(outcome.progress.tokens, outcome.result.tokens);
  EXPECT_LT(outcome.result.tokens, given.options.tokens);  // texts do not fill their sequences
}

TEST_F(OnPolicyTest, AShareOfNothingIsTheStageWithout) {
  auto without = given();
  without.options.on_policy = {};
  auto none = given();
  none.options.on_policy.share = 0;
  EXPECT_EQ(hash_of_run(without, "without"), hash_of_run(none, "none"));
  EXPECT_NE(hash_of_run(without, "again"), hash_of_run(given(), "half"));
}

TEST_F(OnPolicyTest, AllMayBeWritten) {
  auto given = this->given();
  given.options.on_policy.share = 1;
  const auto run = place("run");
  Training training(given, run);
  Witness witness;
  EXPECT_TRUE(training.run(witness).finished);
  for (const auto& line : record::read_metrics(run / "metrics.jsonl")) {
    EXPECT_FALSE(line.contains("parts"));
    EXPECT_NEAR(line.at("loss"), line.at("written_parts").at("kl_divergence"), 1e-9);
  }
}

TEST_F(OnPolicyTest, StoppingChangesNoBit) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    auto given = this->given();
    given.dtype = dtype;
    given.options.on_policy.share = 0.4;  // unlike numbers of sequences
    const auto name = std::string(at::toString(dtype));
    const auto straight = place("straight" + name);
    Training whole(given, straight);
    Witness witness;
    const auto expected = whole.run(witness);
    for (const std::int64_t step : {1, 3, 4}) {
      SCOPED_TRACE(testing::Message() << "stopped after step " << step);
      const auto stopped = place("stopped" + name + std::to_string(step));
      Witness first, second;
      first.stop_after = step;
      EXPECT_FALSE(Training(given, stopped).run(first).finished);
      Training rest(given, stopped);
      const auto outcome = rest.run(second);
      EXPECT_EQ(rest.weights_hash(), whole.weights_hash());
      EXPECT_EQ(outcome.progress.cursor, [&] {
        auto cursor = expected.progress.cursor;
        cursor["on_policy"]["counts"]["seconds"] =
            outcome.progress.cursor.at("on_policy").at("counts").at("seconds");
        return cursor;
      }());
      EXPECT_EQ(test::lines_without_clocks(stopped), test::lines_without_clocks(straight));
      EXPECT_EQ(outcome.result.written->tokens, expected.result.written->tokens);
    }
  }
}

// The sequences of a step are the same however they are cut into micro-batches.
TEST_F(OnPolicyTest, BatchesChangeNothingButTheOrderOfSums) {
  std::vector<std::vector<base::Json>> lines;
  for (const auto& batch : {train::BatchOptions{1, 4, 0}, {4, 1, 0}, {2, 2, 1}}) {
    auto given = this->given();
    given.options.batch = batch;
    const auto run = place("batch-" + std::to_string(lines.size()));
    Witness witness;
    EXPECT_TRUE(Training(given, run).run(witness).finished);
    lines.push_back(test::lines_without_clocks(run));
  }
  for (std::size_t other = 1; other < lines.size(); ++other)
    for (std::size_t step = 0; step < lines[0].size(); ++step) {
      EXPECT_EQ(lines[other][step].at("written"), lines[0][step].at("written"));
      EXPECT_NEAR(lines[other][step].at("loss"), lines[0][step].at("loss"), 1e-4);
    }
}

TEST_F(OnPolicyTest, RanksWriteTheTextsOfOne) {
  auto given = this->given();
  given.options.batch = {.sequences = 1, .accumulate = 4, .wave = 0};
  std::vector<record::StepReport> one;
  std::int64_t written_by_one = 0;
  for (const bool common_blocks : {true, false})
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, common memory " << common_blocks);
      given.options.shard = {ranks, ranks};
      const auto run = place("ranks-" + std::to_string(ranks) + std::to_string(common_blocks));
      std::mutex mutex;
      test::on_ranks(
          ranks,
          [&](comm::Group& world) {
            at::set_num_threads(1);
            Training training(given, run, world);
            Witness witness;
            const auto outcome = training.run(witness);
            EXPECT_TRUE(outcome.finished);
            const std::lock_guard lock(mutex);
            if (one.empty()) {
              one = witness.reports;
              written_by_one = outcome.result.written->tokens;
            }
            EXPECT_EQ(outcome.result.written->tokens, written_by_one);
            ASSERT_EQ(witness.reports.size(), one.size());
            for (std::size_t step = 0; step < one.size(); ++step) {
              EXPECT_NEAR(witness.reports[step].loss, one[step].loss, 1e-4 * one[step].loss);
              EXPECT_EQ(witness.reports[step].tokens, one[step].tokens);
            }
          },
          common_blocks);
    }
}

// They may come as numbers that are held by others.
TEST_F(OnPolicyTest, ATeacherWithoutLogitsOnTextIsAskedForThemOnWritten) {
  auto given = this->given();
  given.losses = {{.kind = loss::LossKind::total_variation}, {}};
  Training training(given, place("run"));
  Witness witness;
  EXPECT_TRUE(training.run(witness).finished);
  ASSERT_EQ(witness.reports.back().written_parts.size(), 1U);
  EXPECT_EQ(witness.reports.back().written_parts.front().first, "total_variation");
}

TEST_F(OnPolicyTest, SourcesWithoutPromptsAreRefused) {
  auto given = this->given();
  given.sources = {source("empty", {"", "", ""})};
  Training training(given, place("run"));
  Witness witness;
  const auto message = test::message_of<base::DataError>([&] { (void)training.run(witness); });
  EXPECT_SAYS(message, "empty");
}

}  // namespace
}  // namespace retort
