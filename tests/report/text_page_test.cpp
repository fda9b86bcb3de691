// The page of what text holds.
#include "retort/report/text_page.h"

#include <gtest/gtest.h>

#include "support/message_of.h"

namespace retort::report {
namespace {

using base::Json;

Json made_up_inspection() {
  return Json::parse(R"({"sources": [{"name": "chats<x>", "documents": 12, "bytes": 3456, "duplicates": 1,
    "bad_lines": 2, "first_bad": "line 3 is bad", "tokens": 600, "bytes_per_token": 5.76, "sequence_length": 64,
    "lengths": {"least": 1, "p10": 2, "median": 5, "p90": 9, "p99": 10, "most": 11},
    "sequences": 10, "padding": 0.0625, "without_target": 0.5, "too_long": 3,
    "samples": [{"place": "a.jsonl, line 1", "text": "Q<b> A", "answers": [[5, 6]], "cut": true},
                {"place": "b", "text": "x", "answers": [[0, 9], 3, ["a", 1]]}]}]})");
}

TEST(TextPage, HasNumbersAndSamplesWithTheirAnswersMarked) {
  const auto page = text_page(made_up_inspection());
  EXPECT_TRUE(is_text_page(page.substr(0, 4096)));
  for (const char* part : {"chats&lt;x&gt;", "3456", "5.76", "6.2 %", "50.0 %", "line 3 is bad",
                           "Q&lt;b&gt; </span><mark>A</mark>", "a.jsonl, line 1"})
    EXPECT_SAYS(page, part);
}

TEST(TextPage, SurvivesOtherShapes) {
  for (const Json& json : {Json(), Json{{"sources", 3}}, Json{{"sources", {1, nullptr, Json::object()}}}})
    EXPECT_NO_THROW((void)text_page(json));
  EXPECT_FALSE(is_text_page("<html>"));
}

}  // namespace
}  // namespace retort::report
