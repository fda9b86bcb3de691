// The page of times of models side by side.
#include "retort/report/generation_page.h"

#include <gtest/gtest.h>

#include "report/made_up_run.h"
#include "retort/base/json.h"
#include "retort/report/html.h"
#include "support/message_of.h"

namespace retort::report {
namespace {

using base::Json;

Json measures(double rate) {
  return {{"tokens_per_second", {{"mean", rate}, {"deviation", 0.5}}},
          {"prompts_per_second", {{"mean", rate / 128}, {"deviation", 0.1}}},
          {"first_token_seconds", {{"mean", 0.125}, {"deviation", 0.001}}}};
}

Json made_up(const std::string& name = "pruned") {
  return {
      {"machine", {{"processor", "Made Up 9000"}, {"threads", 2}, {"device", "cpu"}}},
      {"dtype", "fp32"},
      {"prompts", nullptr},
      {"new_tokens", 128},
      {"length", "fixed"},
      {"runs", 10},
      {"energy", {{"measured", false}, {"why_not", "made up"}}},
      {"baseline", "whole"},
      {"works",
       {{{"place", "batch 16"},
         {"models",
          {{{"name", "whole"}, {"measures", measures(579)}},
           {{"name", name},
            {"measures", measures(812)},
            {"ratios",
             {{"tokens_per_second", {{"ratio", 1.402}, {"interval", {1.391, 1.413}}, {"p", 0.002}}}}}}}}}}},
      {"conclusions", {{{"model", name}, {"sentence", name + " is faster."}, {"warns", false}}}}};
}

TEST(GenerationPage, ShowsChartsRatiosAndWhatFollows) {
  const auto page = generation_page(made_up());
  for (const char* part : {"Made Up 9000", "random ids", "128, the same work for all",
                           "not measured: made up", "time to first token (ms)", "prompts per second",
                           "1.391 to 1.413", "pruned is faster.", "\"data\":[812.0]", "batch 16"})
    EXPECT_SAYS(page, part);
  EXPECT_EQ(page.find("not always a faster one"), std::string::npos);
}

TEST(GenerationPage, SetsAWarningApart) {
  auto rates = made_up();
  rates["conclusions"][0]["warns"] = true;
  EXPECT_SAYS(generation_page(rates), "<aside><p>A smaller model is not always a faster one:</p>");
}

TEST(GenerationPage, EscapesNamesOfModels) {
  const auto page = generation_page(made_up(kHostile));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_SAYS(page, Html(kHostile).str());
}

TEST(GenerationPage, IsKnownByItsBeginning) {
  EXPECT_TRUE(is_generation_page(generation_page(made_up()).substr(0, 4096)));
  EXPECT_FALSE(is_generation_page("<!DOCTYPE html>\n<html><head><title>mine</title>"));
}

TEST(GenerationPage, LeavesOutWhatIsMissing) {
  EXPECT_SAYS(generation_page(Json::object()), "</html>");
}

}  // namespace
}  // namespace retort::report
