// What is refused before a run begins, and what it is warned of.
#include <gtest/gtest.h>

#include "pipeline/trained_project.h"
#include "support/message_of.h"

namespace retort::pipeline {
namespace {

using test::message_of;

class PreflightTest : public testing::Test {
 protected:
  template <typename E>
  std::string refusal(const recipe::Recipe& recipe, const RunRequest& request) {
    const auto message = message_of<E>([&] { run(recipe, request, told_); });
    EXPECT_FALSE(std::filesystem::exists(project_.path("run")))
        << "nothing is made for a run that is refused";
    return message;
  }
  template <typename E>
  std::string refusal(const recipe::Recipe& recipe) {
    return refusal<E>(recipe, project_.request(false));
  }

  RunRequest only(const std::string& stage) const {
    auto request = project_.request(false);
    request.only_stage = stage;
    return request;
  }

  static std::string finetune(const std::string& from, const std::string& more = "") {
    return "{name: tuned, kind: finetune, from: " + from + ", data: [text], tokens: 512, " +
           test::TrainedProject::kPacking + more + "}";
  }
  static std::string tuned_from(const std::string& from, int sequences) {
    return base::join("{name: tuned, kind: finetune, from: ", from, ", data: [text], tokens: 4k, packing: ",
                      "{sequence_length: 64}, batch: {sequences: ", sequences, "}, evaluate_tokens: 512}");
  }
  static std::string evaluate(const std::string& source, const std::string& more = "") {
    return "{name: scores, kind: evaluate, models: [" + test::TrainedProject::model() + "], data: [" +
           source + "], context: 64" + more + "}";
  }
  static std::string select(const std::string& source) {
    return "{name: chosen, kind: select, models: [born], teacher: born, data: [" + source +
           "], tokens: 512, " + test::TrainedProject::kPacking + "}";
  }
  static std::string distil(const std::string& more) {
    return "{name: student, kind: distill, from: " + test::TrainedProject::model() +
           ", teacher: " + test::TrainedProject::model() + ", data: [text], tokens: 512, " +
           test::TrainedProject::kPacking + more + "}";
  }
  static std::string later_prune(const std::string& more, const std::string& parameters = "98%") {
    return "{name: pruned, kind: prune, from: born, data: [text], target: {parameters: " + parameters +
           "}, sequence_length: 64" + more + "}";
  }
  static std::string prune(const std::string& more) {
    return "{name: pruned, kind: prune, units: uniform, from: " + test::TrainedProject::model() +
           ", data: [text], target: {parameters: 90%}, calibration_tokens: 1k, sequence_length: 64" + more +
           "}";
  }

  test::TrainedProject project_;
  test::Told told_;
};

TEST_F(PreflightTest, DryRunPlansMemoryAndChangesNothing) {
  const auto outcome = run(project_.recipe({finetune(test::TrainedProject::model()), evaluate("text")}),
                           project_.request(), told_);
  EXPECT_TRUE(outcome.finished);
  EXPECT_SAYS(outcome.summary, "stage tuned (finetune): memory plan");
  EXPECT_TRUE(told_.warnings.empty());
  EXPECT_FALSE(std::filesystem::exists(project_.path("run")));
}

TEST_F(PreflightTest, RefusesWritingThatCannotBe) {
  const auto recipe = [&](const std::string& more) { return project_.recipe({distil(more)}); };
  EXPECT_SAYS(refusal<base::UsageError>(recipe(", on_policy: {share: 1}")),
              "stage 'student': on_policy: expected a prompt and what is written after it to fit");
  const std::string fits = ", on_policy: {share: 1, max_new_tokens: 8, prompt_tokens: 8}";
  EXPECT_SAYS(refusal<base::UsageError>(recipe(fits + ", loss: [{kind: cross_entropy}]")),
              "stage 'student': on_policy: expected a loss that compares distributions");
  const auto outcome = run(recipe(fits), project_.request(), told_);
  EXPECT_SAYS(outcome.summary, "of which the student writes up to");
}

TEST_F(PreflightTest, RefusesWhatDoesNotFitIntoMemory) {
  const auto recipe = project_.recipe({finetune(test::TrainedProject::model())}, "memory_bytes: 1M\n");
  EXPECT_SAYS(refusal<base::MemoryError>(recipe), "available are 1.0 MB");
}

// Training leaves shapes as they are, so it is known before the first stage.
TEST_F(PreflightTest, RefusesWhatWillNotFitBeforeItsModelIsMade) {
  const auto stages = {project_.train_stage("born"), tuned_from("born", 32)};
  const auto planned = [&](const std::string& stage) {
    const record::RunFiles run(project_.path("run"));
    return run.result(stage).at("memory_planned_bytes").get<std::int64_t>();
  };
  (void)run(project_.recipe(stages), project_.request(false), told_);
  const auto enough = planned("tuned"), least = planned("born");
  ASSERT_LT(least, enough);
  std::filesystem::remove_all(project_.path("run"));
  const auto recipe = project_.recipe(stages, base::join("memory_bytes: ", (least + enough) / 2, "\n"));
  EXPECT_SAYS(refusal<base::MemoryError>(recipe), "available are ");
}

// Before its model is loaded, though nobody knew the size of that when the run began.
TEST_F(PreflightTest, RefusesWhatDoesNotFitOnceItsModelIsMade) {
  const auto recipe = project_.recipe(
      {project_.train_stage("born"),
       "{name: pruned, kind: prune, units: uniform, from: born, data: [text], target: {parameters: 97%}, "
       "calibration_tokens: 500, sequence_length: 64, width_multiple: 8}",
       tuned_from("pruned", 8192)},
      "memory_bytes: 200M\n");
  test::Told told;
  const auto message = message_of<base::MemoryError>([&] { run(recipe, project_.request(false), told); });
  EXPECT_SAYS(message, "available are ");
  EXPECT_TRUE(std::filesystem::exists(project_.path("run") / "stages/pruned.json"));
  EXPECT_FALSE(told.has(told.messages, "tuned: memory plan")) << "it says that when its models are loaded";
}

TEST_F(PreflightTest, RefusesAModelThatIsNotThere) {
  const auto recipe = project_.recipe({project_.train_stage("born"), finetune("./none")});
  EXPECT_SAYS(refusal<base::ModelError>(recipe), "./none");
}

TEST_F(PreflightTest, RefusesATokenizerThatIsNotThere) {
  auto recipe = project_.recipe({project_.train_stage("born")});
  recipe.stages[0].tokenizer = project_.path("none").string();
  EXPECT_SAYS(refusal<base::ModelError>(recipe), "stage 'born': tokenizer: there is no file or directory");
}

TEST_F(PreflightTest, RefusesAStageAloneWhoseModelIsNotFinished) {
  const auto recipe = project_.recipe({project_.train_stage("born"), finetune("born")});
  const auto message = refusal<base::UsageError>(recipe, only("tuned"));
  EXPECT_SAYS(message, "stage 'tuned': needs the model of stage 'born', which is not finished");
  EXPECT_SAYS(message, "run that stage first");
}

TEST_F(PreflightTest, RefusesAStageAloneWhoseProfileIsNotFinished) {
  const auto recipe = project_.recipe({"{name: seen, kind: profile, from: " + test::TrainedProject::model() +
                                           ", data: [text], calibration_tokens: 1k, sequence_length: 64}",
                                       prune(", profile: seen")});
  EXPECT_SAYS(refusal<base::UsageError>(recipe, only("pruned")),
              "stage 'pruned': needs the profile of stage 'seen', which is not finished");
}

// Of a model that is to come, since its stage keeps the sizes that it begins with.
TEST_F(PreflightTest, RefusesALaterStageThatHasTooLittleText) {
  const auto refused = [&](const std::string& more) {
    return refusal<base::DataError>(project_.recipe({project_.train_stage("born"), later_prune(more)}));
  };
  EXPECT_SAYS(refused(", calibration_tokens: 1M"), "stage 'pruned': source 'text' has only ");
}

TEST_F(PreflightTest, RefusesALaterSearchThatItsBudgetCannotPay) {
  const auto message = refusal<base::UsageError>(project_.recipe(
      {project_.train_stage("born"),
       later_prune(", calibration_tokens: 2k, width_multiple: 8, search: {budget_tokens: 10}")}));
  EXPECT_SAYS(message, "stage 'pruned': prune: search.budget_tokens is 10, expected at least ");
}

TEST_F(PreflightTest, RefusesATargetThatALaterStageCannotReach) {
  const auto message = refusal<base::UsageError>(
      project_.recipe({project_.train_stage("born"), later_prune(", calibration_tokens: 2k", "40%")}));
  EXPECT_SAYS(message, "stage 'pruned': prune: target: expected at least ");
}

TEST_F(PreflightTest, WarnsOfAWarmUpWithoutEnd) {
  const auto with = [&](const std::string& warmup) {
    return project_.recipe(
        {finetune(test::TrainedProject::model(), ", optim: {warmup_steps: " + warmup + "}")});
  };
  (void)run(with("4"), project_.request(), told_);
  EXPECT_TRUE(told_.warnings.empty());
  (void)run(with("5"), project_.request(), told_);
  ASSERT_EQ(told_.warnings.size(), 1U);
  EXPECT_SAYS(told_.warnings.front(), "stage 'tuned': optim.warmup_steps is 5, and the stage has 4 steps");
}

TEST_F(PreflightTest, WarnsOfTwoNamesForOneText) {
  auto scores = evaluate("text, copy");
  (void)run(project_.recipe({scores}, "", project_.source_line("copy", "10")), project_.request(), told_);
  ASSERT_EQ(told_.warnings.size(), 1U);
  EXPECT_SAYS(told_.warnings.front(), "stage 'scores': data.text and data.copy read the same text");
}

TEST_F(PreflightTest, WarnsWhereAProfileKnowsTheDocumentsThatJudge) {
  const auto profile = [&](const std::string& source) {
    return "{name: seen, kind: profile, from: " + test::TrainedProject::model() + ", data: [" + source +
           "], calibration_tokens: 1k, sequence_length: 64}";
  };
  (void)run(
      project_.recipe({profile("copy"), prune(", profile: seen")}, "", project_.source_line("copy", "15")),
      project_.request(), told_);
  EXPECT_TRUE(told_.warnings.empty());
  (void)run(project_.recipe({profile("text"), prune(", profile: seen")}), project_.request(), told_);
  ASSERT_EQ(told_.warnings.size(), 1U);
  EXPECT_SAYS(told_.warnings.front(), "profile 'seen' ranks by documents of data.text");
}

// Its parts then stand on both sides.
TEST_F(PreflightTest, WarnsWhereAPruneStageJudgesByADocumentThatItFitsTo) {
  std::string words;
  for (int word = 0; word < 3000; ++word) words += "word" + std::to_string(word * 7 % 997) + ' ';
  std::ofstream(project_.path("book.txt")) << words;
  auto pruned = prune("");
  pruned.replace(pruned.find("[text]"), 6, "[book]");
  const auto book = "  book: {path: " + project_.path("book.txt").string() + ", held_out: {fraction: 0%}}\n";
  (void)run(project_.recipe({pruned}, "", book), project_.request(false), told_);
  EXPECT_TRUE(told_.has(told_.warnings, "calibration text 'book' has too few documents"));
}

TEST_F(PreflightTest, RefusesSequencesLongerThanTheModelAllows) {
  auto recipe = project_.recipe({project_.train_stage("born"), finetune("born")});
  std::get<train::TrainOptions>(recipe.stages[1].options).packing.sequence_length = 129;
  const auto message = refusal<base::UsageError>(recipe);
  EXPECT_SAYS(message, "'tuned'");
  EXPECT_SAYS(message, "packing.sequence_length is 129");
}

TEST_F(PreflightTest, RefusesToLearnWhatIsMeasured) {
  const auto copy = project_.source_line("copy", "15");
  const auto learns = finetune(test::TrainedProject::model());
  const char* found = "found 4 held-out documents of data.copy";  // of 8; the others are held out of both
  EXPECT_SAYS(refusal<base::DataError>(project_.recipe({learns, evaluate("copy")}, "", copy)), found);
  EXPECT_SAYS(
      refusal<base::DataError>(project_.recipe({project_.train_stage("born"), select("copy")}, "", copy)),
      found);
  EXPECT_NO_THROW(
      run(project_.recipe({learns, evaluate("copy", ", seen: true")}, "", copy), project_.request(), told_));
}

TEST_F(PreflightTest, WarnsWhereAChoiceIsMadeByWhatIsMeasured) {
  run(project_.recipe({project_.train_stage("born"), select("text"), evaluate("text")}), project_.request(),
      told_);
  const char* chosen = "a select stage chooses by held-out documents of data.text";
  EXPECT_TRUE(told_.has(told_.warnings, chosen));

  told_.warnings.clear();
  run(project_.recipe({project_.train_stage("born"), select("text")}), project_.request(), told_);
  EXPECT_FALSE(told_.has(told_.warnings, chosen));
}

// What a finished stage was given is no longer needed.
TEST_F(PreflightTest, AFinishedStageIsNotLookedAtAgain) {
  auto recipe = project_.recipe({project_.train_stage("born")});
  const auto tokenizer = project_.path("tokenizer");
  std::filesystem::copy(recipe.stages[0].tokenizer, tokenizer, std::filesystem::copy_options::recursive);
  recipe.stages[0].tokenizer = tokenizer.string();
  ASSERT_TRUE(run(recipe, project_.request(false), told_).finished);
  std::filesystem::remove_all(tokenizer);
  EXPECT_NO_THROW(run(recipe, project_.request(), told_));
  std::filesystem::remove(project_.path("run/stages/born.json"));
  EXPECT_THROW(run(recipe, project_.request(), told_), base::ModelError);
}

}  // namespace
}  // namespace retort::pipeline
