#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/made_up_run.h"
#include "retort/base/json.h"
#include "retort/report/report.h"

namespace retort::report {
namespace {

using base::Json;

TEST(ScoresTable, AlignsTheNumbers) {
  const char* const expected =
      "model    perplexity  recovery  parameters      KL    top-1  bits/byte  non-zero     file  tokens/s\n"
      "--------------------------------------------------------------------------------------------------\n"
      "teacher       27.11   100.0 %      5.51 M  0.0000  100.0 %      1.561     100 %  11.0 MB     21950\n"
      "student       33.78    80.3 %      3.31 M  0.2134   74.2 %      1.665      75 %   6.6 MB     34012\n"
      "means over sources, context 512; KL (nats/token), top-1 and recovery (perplexity) against teacher\n"
      "teacher: values dequantised from Q4_1, Q8_0\n";
  EXPECT_EQ(scores_table(Json::parse(kEvaluation)), expected);
}

TEST(ScoresTable, ShowsDifferencesWithIntervalsAndCalibration) {
  Json result = Json::parse(kEvaluation);
  for (int model : {0, 1}) {
    result["models"][model]["sources"][0]["documents"] = 312;
    Json& mean = result["models"][model]["mean"];
    mean["nll_difference"] = 0.22 * model;
    mean["nll_difference_interval"] = Json({0.19312 * model, 0.24671 * model});
    mean["ece"] = 0.02131;
    mean["confidence_gap"] = model ? -0.0123 : 0.004;
  }
  const std::string table = scores_table(result);
  EXPECT_EQ(
      table.substr(table.find("\n\n") + 2),
      std::string(
          "model    documents  NLL - teacher's       95 % interval     ECE  confidence - accuracy\n") +
          std::string(86, '-') +
          "\n"
          "teacher        312                \u2013                   \u2013  0.0213                +0.0040\n"
          "student        312          +0.2200  +0.1931 to +0.2467  0.0213                -0.0123\n"
          "NLL in nats/token on the same documents, drawn anew for the interval; ECE: expected calibration "
          "error\n"
          "where a few documents lose far more than the others, up to 2 of 10 intervals end below the "
          "truth\n");
  result["models"][1]["mean"]["nll_difference_interval"] = nullptr;
  result["models"][1]["sources"][0]["documents"] = 1;
  EXPECT_NE(scores_table(result).find("1          +0.2200  too few documents  0.0213"), std::string::npos)
      << scores_table(result);
  result["models"][1]["mean"]["no_interval"] = "equal documents";
  EXPECT_NE(scores_table(result).find("+0.2200  equal documents"), std::string::npos) << scores_table(result);
}

TEST(ScoresTable, CallsModelsByTheirLabels) {
  Json result = Json::parse(kEvaluation);
  result["models"][0]["label"] = "whole";
  const std::string table = scores_table(result);
  EXPECT_NE(table.find("\nwhole "), std::string::npos) << table;
  EXPECT_NE(table.find("\nwhole: values dequantised"), std::string::npos) << table;
  EXPECT_EQ(table.find("\nteacher "), std::string::npos) << table;
}

TEST(ScoresTable, ShowsDashesForWhatIsMissing) {
  const std::string table = scores_table(Json::parse(R"({"models": [{"name": "m"}]})"));
  EXPECT_NE(table.find("m               \u2013         \u2013"), std::string::npos) << table;
}

TEST(ScoresTable, FitsTheTerminalAndGivesItNoOrders) {
  Json result = Json::parse(kEvaluation);
  result["models"][0]["name"] = "a\x1B[2Jb\nc " + std::string(300, 'x');
  result["teacher"] = std::string(300, 'y');
  const std::string table = scores_table(result);
  EXPECT_EQ(table.find('\x1B'), std::string::npos);
  EXPECT_NE(table.find("\u2026"), std::string::npos);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 6);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }), 110)
        << line;
}

TEST(GeneratedTexts, ShowTheAnswerBehindTheEndOfALongPrompt) {
  const auto shown = [](const std::string& prompt, const std::string& answer) {
    return generated_texts(
        {{"models",
          {{{"name", "student"}, {"generations", {{{"prompt", prompt}, {"text", prompt + answer}}}}}}}});
  };
  EXPECT_EQ(shown("The package ", "is\ninstalled."), "student: The package is installed.\n");
  const std::string chat(200, 'x');
  const auto line = shown(chat + " Name three animals.\n", "A cat, a dog.");
  EXPECT_TRUE(line.starts_with("student: \u2026xx")) << line;
  EXPECT_TRUE(line.ends_with("xx Name three animals. A cat, a dog.\n")) << line;
  // Of a long answer the beginning is shown, and a third of the line is prompt.
  const auto cut = shown(chat, "The answer " + std::string(200, 'y'));
  EXPECT_NE(cut.find("xxxThe answer yyy"), cut.npos) << cut;
  EXPECT_TRUE(cut.ends_with("yy\u2026\n")) << cut;
}

TEST(ScoresTable, SurvivesOtherShapes) {
  EXPECT_EQ(scores_table(Json()), "no models were evaluated\n");
  EXPECT_EQ(scores_table(Json::parse(R"({"models": {"a": 1}})")), "no models were evaluated\n");
  EXPECT_NO_THROW(scores_table(Json::parse(
      R"({"models": [1, null, [], {"mean": 3, "parameters": "x", "file_bytes": -1, "nonzero_parameters": 1e300}]})")));
}

}  // namespace
}  // namespace retort::report
