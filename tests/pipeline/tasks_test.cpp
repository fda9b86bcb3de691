// Evaluation tasks in a run: their scores beside the teacher's, and text that a run must not learn from.
#include <gtest/gtest.h>

#include "pipeline/trained_project.h"
#include "retort/base/json_file.h"
#include "support/message_of.h"

namespace retort::pipeline {
namespace {

using test::message_of;

constexpr const char* kQuiz = R"(task: quiz
dataset_path: json
dataset_kwargs: {data_files: {test: quiz.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_choice: answers
doc_to_target: right
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
)";

constexpr const char* kSums = R"(task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: question
doc_to_target: answer
generation_kwargs: {until: ["\n"], max_gen_toks: 6, do_sample: false}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
)";

class Tasks : public testing::Test {
 protected:
  Tasks() {
    write("quiz.yaml", kQuiz);
    write("sums.yaml", kSums);
    std::string quiz, sums;
    for (int i = 0; i < 12; ++i) {
      quiz += base::join(
          R"({"question": "Which of these is number )", i, R"( of the list?", "answers": ["item )", i,
          R"(", "another one", "none at all, since the list is empty"], "right": )", i % 3, "}\n");
      sums += base::join(R"({"question": ")", i, " plus ", 2 * i, R"( is", "answer": ")", 3 * i, "\"}\n");
    }
    write("quiz.jsonl", quiz);
    write("sums.jsonl", sums);
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(project_.path(name)) << content;
  }

  std::string evaluate(const std::string& more = "") const {
    return "{name: scores, kind: evaluate, models: [" + test::TrainedProject::model() +
           ", born], as: [whole, small], data: [text], context: 64, tokens: 512, tasks: [" +
           project_.path("quiz.yaml").string() + ", " + project_.path("sums.yaml").string() + "]" + more +
           "}";
  }

  RunOutcome run_of(const std::string& stage) {
    return run(project_.recipe({project_.train_stage("born"), stage}), project_.request(false), told_);
  }

  base::Json result() const { return base::read_own_json(project_.path("run") / "stages" / "scores.json"); }

  test::TrainedProject project_;
  test::Told told_;
};

TEST_F(Tasks, OfAStageAreScoredForEachModelBesideTheTeacher) {
  const auto outcome = run_of(evaluate());
  const auto models = result().at("models");
  ASSERT_EQ(models.size(), 2U);
  const auto& whole = models.at(0).at("tasks");
  EXPECT_EQ(whole.at("n-samples").at("quiz").at("effective"), 12);
  EXPECT_TRUE(whole.at("results").at("quiz").contains("acc_norm,none"));
  EXPECT_TRUE(whole.at("results").at("sums").contains("exact_match,none"));
  EXPECT_FALSE(whole.contains("comparisons"));
  const auto& comparisons = models.at(1).at("tasks").at("comparisons");
  ASSERT_EQ(comparisons.size(), 3U);
  for (const auto& one : comparisons) EXPECT_TRUE(one.contains("recovery"));
  EXPECT_NE(outcome.summary.find("quiz"), std::string::npos) << outcome.summary;
  EXPECT_NE(outcome.summary.find("exact_match"), std::string::npos) << outcome.summary;
  const auto files = result().at("input_files");
  for (const auto* name : {"quiz.yaml", "quiz.jsonl", "sums.jsonl"})
    EXPECT_TRUE(files.contains(project_.path(name).string())) << name;
}

TEST_F(Tasks, WithExamplesReadOthersThanWithout) {
  (void)run_of(evaluate());
  const auto without = result().at("models").at(0).at("tasks");
  std::filesystem::remove_all(project_.path("run"));
  write("quiz.yaml", std::string(kQuiz) + "fewshot_split: test\n");
  write("sums.yaml", std::string(kSums) + "fewshot_split: test\n");
  (void)run_of(evaluate(", num_fewshot: 2, task_limit: 5"));
  const auto with = result().at("models").at(0).at("tasks");
  EXPECT_EQ(with.at("n-shot").at("quiz"), 2);
  EXPECT_EQ(with.at("n-samples").at("quiz").at("effective"), 5);
  EXPECT_GT(with.at("tokens").get<int>() / 5, 2 * without.at("tokens").get<int>() / 12);
}

TEST_F(Tasks, WhoseDocumentsAStageLearnsFromAreRefused) {
  std::ifstream text(project_.path("text.txt"));
  std::string learned;
  std::getline(text, learned);
  const auto half = learned.size() / 2;
  write("quiz.jsonl",
        base::Json{
            {"question", learned.substr(0, half)}, {"answers", {learned.substr(half), "none"}}, {"right", 0}}
                .dump() +
            "\n");
  write("quiz.yaml",
        std::string(kQuiz).replace(std::string(kQuiz).find("Question: {{question}}\\nAnswer:"),
                                   std::string("Question: {{question}}\\nAnswer:").size(), "{{question}}"));
  const auto message = message_of<base::DataError>([&] { (void)run_of(evaluate()); });
  EXPECT_SAYS(message, "data.text");
  EXPECT_SAYS(message, "task quiz");
  EXPECT_FALSE(std::filesystem::exists(project_.path("run")));
  EXPECT_NO_THROW((void)run_of(evaluate(", seen: true")));
}

TEST_F(Tasks, FaultsAreSaidBeforeAnythingRuns) {
  write("quiz.jsonl", "{\"question\": \"What?\", \"answers\": [\"this\"], \"right\": 7}\n");
  EXPECT_SAYS(message_of<base::DataError>([&] { (void)run_of(evaluate()); }), "quiz");
  write("quiz.jsonl", "");
  EXPECT_SAYS(message_of<base::DataError>([&] { (void)run_of(evaluate()); }), "quiz");
  std::filesystem::remove(project_.path("quiz.jsonl"));
  EXPECT_SAYS(message_of<base::Error>([&] { (void)run_of(evaluate()); }), "quiz.jsonl");
  EXPECT_FALSE(std::filesystem::exists(project_.path("run")));
}

TEST_F(Tasks, OfACommandHaveTheNumbersOfAStage) {
  (void)run_of(evaluate());
  const auto of_stage = result().at("models");
  TasksRequest request{
      .model = {.model = (project_.path("run") / "models" / "born").string()},
      .teacher = test::TrainedProject::model(),
      .tasks = {.files = {project_.path("quiz.yaml").string(), project_.path("sums.yaml").string()}},
      .samples = project_.path("samples")};
  const auto of_command = evaluate_tasks(request, told_);
  EXPECT_EQ(of_command.at("results"), of_stage.at(1).at("tasks").at("results"));
  EXPECT_EQ(of_command.at("comparisons"), of_stage.at(1).at("tasks").at("comparisons"));
  EXPECT_EQ(of_command.at("teacher").at("results"), of_stage.at(0).at("tasks").at("results"));
  std::ifstream samples(project_.path("samples") / "samples_quiz.jsonl");
  int lines = 0;
  for (std::string line; std::getline(samples, line); ++lines) {
    const auto sample = base::parse_json(line);
    EXPECT_EQ(sample.at("doc_id"), lines);
    EXPECT_TRUE(sample.contains("acc_norm"));
  }
  EXPECT_EQ(lines, 12);
}

}  // namespace
}  // namespace retort::pipeline
