// Evaluation tasks as the terminal and the page show them.
#include <gtest/gtest.h>

#include "report/made_up_run.h"
#include "retort/base/json.h"
#include "retort/report/report.h"
#include "support/page.h"

namespace retort::report {
namespace {

using base::Json;

// Two models on a task of two metrics, and one on a perplexity that is not compared.
Json evaluation() {
  return Json::parse(R"({"teacher": "whole", "models": [
  {"name": "whole", "tasks": {"n-shot": {"quiz": 0}, "results": {"quiz":
    {"alias": "quiz", "acc,none": 0.8, "acc_stderr,none": 0.0125, "acc_norm,none": 0.75, "acc_norm_stderr,none": 0.02}}}},
  {"name": "student", "label": "small", "tasks": {"n-shot": {"quiz": 0, "pages": 0}, "results": {
    "quiz": {"alias": "quiz", "acc,none": 0.5, "acc_stderr,none": 0.016, "acc_norm,none": 0.45,
             "acc_norm_stderr,none": 0.021},
    "pages": {"alias": "pages", "word_perplexity,none": 38.9412, "word_perplexity_stderr,none": "N/A"}},
   "comparisons": [{"task": "quiz", "metric": "acc", "filter": "none",
     "recovery": {"value": 0.625, "interval": [0.58, 0.671]},
     "recovery_above_chance": {"value": null, "interval": null, "reason": "the teacher is not above chance"},
     "mcnemar": {"student_only": 3, "teacher_only": 40, "p_value": 1.2e-9}}]}}]})");
}

TEST(TasksReport, TheTableHasScoresAndWhatIsLeftOfTheTeacher) {
  const auto table = tasks_table(evaluation());
  EXPECT_NE(table.find("80.0 %  1.2"), std::string::npos) << table;
  EXPECT_NE(table.find("62.5 % (58.0 to 67.1)"), std::string::npos) << table;
  EXPECT_NE(table.find("1.2e-09"), std::string::npos) << table;
  EXPECT_NE(table.find("word_perplexity"), std::string::npos) << table;
  EXPECT_NE(table.find("38.94"), std::string::npos) << table;
  EXPECT_EQ(table.find("N/A"), std::string::npos) << table;
  EXPECT_NE(table.find("small"), std::string::npos) << table;
  EXPECT_TRUE(tasks_table(Json::parse(R"({"models": [{"name": "m"}]})")).empty());
}

TEST(TasksReport, WithoutATeacherNothingIsCompared) {
  const auto result = as_evaluation(
      {{"model_name", "m"}, {"n-shot", {{"quiz", 3}}}, {"results", {{"quiz", {{"acc,none", 0.25}}}}}});
  const auto table = tasks_table(result);
  EXPECT_NE(table.find("25.0 %"), std::string::npos) << table;
  EXPECT_EQ(table.find("recovery"), std::string::npos) << table;
}

TEST(TasksReport, ThePageHasASectionWithATableAndBars) {
  const RunFolder run;
  write_made_up_run(run);
  run.write("stages/scores.json", evaluation().dump());
  const auto page = html_report(run.path());
  const auto tables = test::tables_with(page, "tasks", "Above chance95 %");
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_NE(page.find("62.5 % (58.0 to 67.1)"), std::string::npos);
  EXPECT_NE(page.find("right answers (%)"), std::string::npos);
}

}  // namespace
}  // namespace retort::report
