#include "retort/tasks/scores.h"

#include <cmath>
#include <limits>

#include "retort/tasks/metrics.h"
#include "tasks/files_for_tests.h"

namespace retort::tasks {
namespace {

using base::DataError;

Answer answer(double log_likelihood, bool is_greedy = false) {
  return {log_likelihood, is_greedy, ""};
}

PreparedTask choices(const std::string& more = "") {
  const TaskFolder folder;
  return prepared(folder, choice_task(more), kChoiceRows);
}

double value_of(const TaskScores& scores, Metric metric) {
  const auto* score = scores.find(metric);
  return score == nullptr ? std::numeric_limits<double>::quiet_NaN() : score->value;
}

TEST(TaskScores, DivideByCharactersForAccNorm) {
  const auto task = choices();
  // Gold 0, 1, 1 of choices of one and two letters.
  const std::vector<std::vector<Answer>> answers{
      {answer(-2), answer(-3)}, {answer(-2), answer(-3)}, {answer(-9), answer(-1)}};
  const auto scores = score(task, answers);

  EXPECT_DOUBLE_EQ(value_of(scores, Metric::acc), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value_of(scores, Metric::acc_norm), 2.0 / 3);
  EXPECT_EQ(scores.find(Metric::acc_norm)->values[0].value, 0);
  EXPECT_DOUBLE_EQ(*scores.find(Metric::acc)->standard_error,
                   std::sqrt((2 * 1.0 / 9 + 4.0 / 9) / 2) / std::sqrt(3.0));
}

TEST(TaskScores, TakeTheFirstOfEquals) {
  const auto task = choices();
  const std::vector<std::vector<Answer>> answers{
      {answer(-1), answer(-1)}, {answer(-1), answer(-1)}, {answer(NAN), answer(-1)}};
  const auto scores = score(task, answers);

  EXPECT_EQ(scores.find(Metric::acc)->values[0].value, 1);
  EXPECT_EQ(scores.find(Metric::acc)->values[1].value, 0);
  EXPECT_EQ(scores.find(Metric::acc)->values[2].value, 0);
}

TEST(TaskScores, HaveWhatSklearnHasOfTwoClasses) {
  const auto task =
      choices("metric_list: [{metric: f1}, {metric: mcc}, {metric: brier_score}, {metric: exact_match}]\n");
  const std::vector<std::vector<Answer>> answers{
      {answer(-2), answer(-1)}, {answer(-2), answer(-1, true)}, {answer(-1), answer(-1)}};
  const auto scores = score(task, answers, {.bootstrap_iterations = 0});

  EXPECT_DOUBLE_EQ(value_of(scores, Metric::f1), 0.5);  // gold 0 1 1, chosen 1 1 0
  EXPECT_DOUBLE_EQ(value_of(scores, Metric::mcc), -0.5);
  EXPECT_DOUBLE_EQ(value_of(scores, Metric::exact_match), 1.0 / 3);
  const double wrong = 1 / (1 + std::exp(-1.0)), right = 1 - wrong;
  EXPECT_NEAR(value_of(scores, Metric::brier_score), (2 * wrong * wrong + 2 * right * right + 0.5) / 3,
              1e-12);
  EXPECT_FALSE(scores.find(Metric::f1)->standard_error);
}

TEST(TaskScores, SubtractWhatAChoiceHasOnItsOwn) {
  const auto task = choices("metric_list: [{metric: acc_mutual_info}]\n");
  const std::vector<Answer> one{answer(-2), answer(-1), answer(-5), answer(-1)};  // 3 above its own, and 0
  const auto scores = score(task, std::vector<std::vector<Answer>>{one, one, one});

  EXPECT_DOUBLE_EQ(value_of(scores, Metric::acc_mutual_info), 1.0 / 3);
}

TEST(TaskScores, OfPerplexitiesAreThoseOfLmEval) {
  std::vector<DocumentValue> values(3);
  for (std::size_t i = 0; i < 3; ++i)
    values[i] = {-1.0 - static_cast<double>(i), 2.0 + static_cast<double>(i), 0, 0, {}};

  EXPECT_DOUBLE_EQ(aggregate(Aggregation::perplexity, values, "t"), std::exp(2.0));
  EXPECT_DOUBLE_EQ(aggregate(Aggregation::weighted_perplexity, values, "t"), std::exp(6.0 / 9));
  EXPECT_DOUBLE_EQ(aggregate(Aggregation::bits_per_byte, values, "t"), 6.0 / 9 / std::log(2.0));
  EXPECT_FALSE(standard_error(Aggregation::weighted_perplexity, values, 100));
}

TEST(TaskScores, BootstrapWithCPythonsDraws) {
  std::vector<DocumentValue> values(5);
  for (std::size_t i = 0; i < 5; ++i) values[i].value = -0.5 * static_cast<double>(i + 1);

  // python3: res = [exp(-mean(r.choices(xs, k=5))) for r in (Random(0), Random(1)) for _ in range(1000)], its
  // sample_stddev, with xs = [-0.5, -1.0, -1.5, -2.0, -2.5].
  EXPECT_NEAR(*standard_error(Aggregation::perplexity, values, 2000), 1.5795554124222708, 1e-12);
}

TEST(TaskScores, CompareGeneratedTextsAsExactMatch) {
  const ExactMatchOptions plain;
  ExactMatchOptions lenient{true, true, true, {chat::PythonRegex::parse("x+")}};

  EXPECT_FALSE(is_exact_match(plain, "A b.", "a b", "w"));
  EXPECT_TRUE(is_exact_match(lenient, "A xxb, 3!", "a b ", "w"));
  EXPECT_FALSE(is_exact_match(lenient, "a b", "a c", "w"));
}

TEST(TaskScores, RefuseAnswersThatDoNotFit) {
  const auto task = choices();

  EXPECT_SAYS(test::message_of<DataError>([&] { (void)score(task, std::vector<std::vector<Answer>>(2)); }),
              "t: has answers to 2 documents, expected 3");
  EXPECT_SAYS(test::message_of<DataError>([&] { (void)score(task, std::vector<std::vector<Answer>>(3)); }),
              "t: document 0: has 0 answers to 2 requests");
}

TEST(TaskScores, AreWrittenAsLmEvalWritesThem) {
  std::vector<PreparedTask> tasks{choices("metadata: {version: 1.0}\n")};
  const std::vector<std::vector<Answer>> answers{
      {answer(-1), answer(-2)}, {answer(-1), answer(-2)}, {answer(-9), answer(-1)}};
  const std::vector<TaskScores> scores{score(tasks[0], answers)};
  const auto json = results_json(tasks, scores);

  EXPECT_EQ(json.at("results").at("t").at("acc,none"), scores[0].find(Metric::acc)->value);
  EXPECT_TRUE(json.at("results").at("t").at("acc_stderr,none").is_number());
  EXPECT_EQ(json.at("versions").at("t"), 1.0);
  EXPECT_EQ(json.at("n-shot").at("t"), 0);
  EXPECT_EQ(json.at("higher_is_better").at("t").at("acc_norm"), true);
  EXPECT_EQ(json.at("n-samples").at("t").dump(), R"({"original":3,"effective":3})");
  EXPECT_EQ(json.at("configs").at("t").at("doc_to_target"), "gold");
  const auto lines = sample_lines(tasks[0], answers, scores[0]);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].at("arguments").dump(), R"([["Q: one\nA:"," a"],["Q: one\nA:"," bb"]])");
  EXPECT_EQ(lines[0].at("filtered_resps").dump(), "[[-1.0,false],[-2.0,false]]");
  EXPECT_EQ(lines[1].at("acc"), 0.0);
}

}  // namespace
}  // namespace retort::tasks
