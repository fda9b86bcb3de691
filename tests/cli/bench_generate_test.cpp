// Which of two models makes texts faster.  No case says which one is.
#include <gtest/gtest.h>

#include "cli/refusal.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/outside_data.h"

namespace retort::test {
namespace {

class BenchGenerate : public testing::Test {
 protected:
  BenchGenerate() {
    copy_model(project_, "m");
    auto small = base::Json::parse(base::read_file(project_.path("config.json")));
    small["num_hidden_layers"] = 1;
    project_.write("small.json", small.dump());
    project_.write("prompts.jsonl", "{\"prompt\": \"Once\"}\n{\"prompt\": \"The Debian project is\"}\n");
  }
  std::vector<std::string> quick(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"bench", "generate",     "--shape", "small.json", "m", "--dtype",
                                    "fp32",  "--new-tokens", "4",       "--runs",     "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  base::Json file(const std::string& name) const {
    return base::Json::parse(base::read_file(project_.path(name)));
  }

  TinyProject project_;
};

TEST_F(BenchGenerate, TimesModelsOnTheSamePromptsAndWritesWhatItPrints) {
  const auto measured = project_.run(quick({"--prompts", "prompts.jsonl", "--batch", "1", "2", "--json",
                                            "--out", "rates.json", "--html", "page.html"}));
  ASSERT_EQ(measured.code, 0) << measured.err;
  const auto rates = file("rates.json");
  EXPECT_EQ(base::Json::parse(measured.out), rates);
  EXPECT_EQ(rates.at("kind"), "generate");
  EXPECT_EQ(rates.at("baseline"), "m");
  EXPECT_EQ(rates.at("length"), "fixed");
  ASSERT_EQ(rates.at("works").size(), 2U);
  for (const auto& work : rates.at("works")) {
    EXPECT_EQ(work.at("texts"), 2);
    for (const auto& model : work.at("models"))
      EXPECT_EQ(model.at("measures").at("tokens_per_second").at("runs").size(), 2U);
  }
  EXPECT_EQ(rates.at("models").at(1).at("weights"), "random");
  EXPECT_SAYS(measured.err, "2 runs are few");
  EXPECT_SAYS(measured.err, "written: page.html");
  const auto page = base::read_file(project_.path("page.html"));
  for (const char* part :
       {"time to first token (ms)", "prompts per second", "tokens per second", "small.json"})
    EXPECT_SAYS(page, part);
  EXPECT_EQ(rates.at("models").at(1).at("packing"), "fp32") << "random weights are no bfloat16 numbers";
}

TEST_F(BenchGenerate, WithoutPromptsTakesRandomIdsOfEachLength) {
  const auto measured = project_.run(quick({"--prompt-tokens", "3", "9", "--batch", "2"}));
  ASSERT_EQ(measured.code, 0) << measured.err;
  for (const char* part :
       {"batch 2: 2 prompts of 3 tokens, 4 new ones each", "prompts of 9 tokens",
        "times the tokens/s of m at batch 2, prompts of 9", "fixed: the same work for all", "energy   "})
    EXPECT_SAYS(measured.out, part);
}

// Numbers of the model that comes with us are bfloat16 ones; random weights are none.
TEST_F(BenchGenerate, SaysWhereWeightsArePackedInOtherWays) {
  const auto model = (source() / "models" / "europa-5m").string();
  const auto measured =
      project_.run({"bench", "generate", model, "--shape", "small.json", "--dtype", "fp32", "--new-tokens",
                    "2", "--runs", "2", "--batch", "1", "--prompt-tokens", "4", "--out", "rates.json"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_EQ(file("rates.json").at("models").at(0).at("packing"), "bf16");
  EXPECT_SAYS(measured.out, "compares other packings: weights of ");
  EXPECT_SAYS(measured.out, "europa-5m in bf16; small.json in fp32");
}

TEST_F(BenchGenerate, LetsTextsEndWhereTheModelEndsThem) {
  const auto measured = project_.run(
      quick({"--free", "--prompts", "prompts.jsonl", "--batch", "4", "--baseline", "small.json"}));
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_SAYS(measured.out, "free: texts end where a model ends them");
  EXPECT_SAYS(measured.err, "a batch of 4 is never full");
  EXPECT_SAYS(measured.out, "m: ");
}

TEST_F(BenchGenerate, TakesAModelTwice) {
  const auto measured = project_.run({"bench", "generate", "m", "m", "--dtype", "fp32", "--new-tokens", "2",
                                      "--runs", "2", "--batch", "1", "--prompt-tokens", "4"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_SAYS(measured.out, "m (2), as large as m, is not judged");
}

TEST_F(BenchGenerate, TellsOfModelsThatReadThePromptsAsOtherIds) {
  copy_model(project_, "other");
  auto tokenizer = base::Json::parse(base::read_file(project_.path("other/tokenizer.json")));
  tokenizer["model"]["merges"] = base::Json::array();
  project_.write("other/tokenizer.json", tokenizer.dump());
  const auto measured = project_.run({"bench", "generate", "m", "other", "--prompts", "prompts.jsonl",
                                      "--dtype", "fp32", "--new-tokens", "2", "--runs", "1", "--batch", "1"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_SAYS(measured.err, "the tokenizers differ");
  EXPECT_SAYS(measured.out, "it has other ids in its prompts");
}

TEST_F(BenchGenerate, RefusesModelsThatDoNotFitTogetherBeforeLoadingOne) {
  auto large = base::Json::parse(base::read_file(project_.path("config.json")));
  large["hidden_size"] = 1 << 17;
  large["vocab_size"] = 1 << 20;
  project_.write("large.json", large.dump());
  expect_refusal(project_, quick({"--shape", "large.json", "--prompt-tokens", "8"}), 6, "time fewer models");
}

TEST_F(BenchGenerate, MistakesAreOneSentence) {
  project_.write("empty.jsonl", "{\"prompt\": \"\"}\n");
  project_.write("mine.html", "<!DOCTYPE html><p>mine");
  expect_refusal(project_, {"bench", "generate"}, 2, "a MODEL or a --shape");
  expect_refusal(project_, quick({"--baseline", "other"}), 2, "'other'");
  expect_refusal(project_, quick({"--prompts", "empty.jsonl", "--no-bos"}), 2,
                 "prompt 1 has no tokens for m");
  expect_refusal(project_, quick({"--prompt-tokens", "126"}), 2, "new ones expected at most 128");
  expect_refusal(project_, quick({"--prompt-tokens", "129", "--free"}), 2, "new ones expected at most 128");
  expect_refusal(project_, quick({"--out", "prompts.jsonl"}), 2, "holds something else");
  expect_refusal(project_, quick({"--html", "mine.html"}), 2, "holds something else");
  expect_refusal(project_, quick({"--out", "same", "--html", "./same"}), 2, "name the same file");
  expect_refusal(project_, {"bench", "generate", "--shape", "small.json", "--runs", "21"}, 2, "--runs");
  expect_refusal(project_, {"bench", "generate", "--shape", "none.json"}, 4, "none.json");
}

}  // namespace
}  // namespace retort::test
