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
      "model    parameters  non-zero     file  perplexity  bits/byte      KL    top-1  recovery  tokens/s\n"
      "--------------------------------------------------------------------------------------------------\n"
      "teacher      5.51 M     100 %  11.0 MB       27.11      1.561  0.0000  100.0 %   100.0 %     21950\n"
      "student      3.31 M      75 %   6.6 MB       33.78      1.665  0.2134   74.2 %    80.3 %     34012\n"
      "held-out means, context 512; KL (nats/token), top-1 and recovery (perplexity) against teacher\n";
  EXPECT_EQ(scores_table(Json::parse(kEvaluation)), expected);
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
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }), 110)
        << line;
}

TEST(ScoresTable, SurvivesOtherShapes) {
  EXPECT_EQ(scores_table(Json()), "no models were evaluated\n");
  EXPECT_EQ(scores_table(Json::parse(R"({"models": {"a": 1}})")), "no models were evaluated\n");
  EXPECT_NO_THROW(scores_table(Json::parse(
      R"({"models": [1, null, [], {"mean": 3, "parameters": "x", "file_bytes": -1, "nonzero_parameters": 1e300}]})")));
}

}  // namespace
}  // namespace retort::report
