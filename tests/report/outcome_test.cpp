// Which model the headline speaks of.
#include "retort/report/outcome.h"

#include <gtest/gtest.h>

namespace retort::report {
namespace {

using base::Json;

Stage made(const std::string& name, const std::string& kind, const std::string& from,
           const std::string& teacher = "") {
  Json recipe = {{"kind", kind}, {"from", from}};
  if (!teacher.empty()) recipe["teacher"] = teacher;
  return {.name = name, .kind = kind, .recipe = recipe, .result = Json::object(), .metrics = {}};
}

/// Scores of models against the first one; perplexity by name.
Stage scores(const std::vector<std::pair<std::string, double>>& models) {
  Json result = {{"teacher", models.front().first}, {"models", Json::array()}};
  for (const auto& [name, perplexity] : models)
    result["models"].push_back(
        {{"name", name},
         {"parameters", name == models.front().first ? 1000 : 600},
         {"mean", {{"perplexity", perplexity}, {"recovery", models.front().second / perplexity}}}});
  return {.name = "scores", .kind = "evaluate", .recipe = Json::object(), .result = result, .metrics = {}};
}

Outcome outcome_after(std::vector<Stage> stages) {
  record::RunContents contents;
  contents.stages = std::move(stages);
  return outcome_of(contents);
}

TEST(Outcome, IsTheModelThatTheChainEndsWith) {
  // A model on the way is better, and a control without a teacher comes last.
  const auto [model, sentence] = outcome_after(
      {made("teacher", "finetune", "m/base"), made("pruned", "prune", "teacher"),
       made("sparse", "sparsify", "pruned"), made("student", "distill", "sparse", "teacher"),
       made("control", "finetune", "sparse"),
       scores({{"teacher", 5}, {"pruned", 9}, {"sparse", 12}, {"student", 10}, {"control", 11}})});
  EXPECT_EQ(model, "student");
  EXPECT_NE(sentence.find("600 parameters, 60 % of its teacher\u2019s 1.0 k"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("perplexity is 10.0 against 5.00, a recovery of 50.0 %."), std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("Of its own chain pruned has a lower one, 9.00."), std::string::npos) << sentence;
}

TEST(Outcome, OfSeveralStudentsIsTheBest) {
  const auto [model, sentence] =
      outcome_after({made("pruned", "prune", "m/base"), made("a", "distill", "pruned", "m/base"),
                     made("b", "distill", "pruned", "m/base"), made("c", "distill", "pruned", "m/base"),
                     scores({{"m/base", 5}, {"a", 8}, {"b", 7}, {"c", 9}, {"pruned", 20}})});
  EXPECT_EQ(model, "b");
  EXPECT_EQ(sentence.find("chain pruned"), std::string::npos) << sentence;
}

TEST(Outcome, IsOfAModelThatIsAlsoHandedOut) {
  const auto scored = scores({{"m/base", 5}, {"pruned", 20}, {"student", 10}, {"control", 9}});
  const auto last =
      outcome_after({made("pruned", "prune", "m/base"), made("student", "distill", "pruned", "m/base"),
                     made("control", "finetune", "pruned"), scored, made("gguf", "export", "student"),
                     made("parts", "profile", "student")});
  EXPECT_EQ(last.model, "student");
}

TEST(Outcome, OfModelsThatTheRunDidNotMakeIsTheLast) {
  EXPECT_EQ(outcome_after({scores({{"m/a", 5}, {"m/b", 4}, {"m/c", 6}})}).model, "m/c");
}

TEST(Outcome, IsNothingWithoutATeacherOrScores) {
  EXPECT_EQ(outcome_after({}).model, "");
  EXPECT_EQ(outcome_after({made("pruned", "prune", "m/base")}).model, "");
  auto alone = scores({{"m/a", 5}});
  EXPECT_EQ(outcome_after({alone}).model, "");
  alone.result["teacher"] = 3;
  alone.result["models"] = "none";
  EXPECT_EQ(outcome_after({alone}).model, "");
}

}  // namespace
}  // namespace retort::report
