#include "retort/report/html.h"

#include <gtest/gtest.h>

#include "report/made_up_run.h"
#include "retort/report/charts.h"

namespace retort::report {
namespace {

TEST(Html, EscapesTextAndAttributes) {
  EXPECT_EQ(Html("a<b> & \"c\" 'd'").str(), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(element("p", {{"title", "\"><x"}}, "1 < 2").str(), "<p title=\"&quot;&gt;&lt;x\">1 &lt; 2</p>");
}

TEST(Html, ReplacesInvalidUtf8AndControlCharacters) {
  EXPECT_EQ(clean_text("a\xFF"
                       "b"),
            "a\uFFFDb");
  EXPECT_EQ(clean_text("\x1B[31m\x7F\tx\n"), "\uFFFD[31m\uFFFD\tx\n");
  EXPECT_EQ(clean_text("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(clean_text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // surrogate
  EXPECT_EQ(clean_text("\xC2\x9B"), "\uFFFD");                  // C1: starts a terminal command
  EXPECT_EQ(clean_text("\xF0\x9F\x98"), "\uFFFD\uFFFD\uFFFD");  // cut off
  EXPECT_EQ(clean_text("Grüße 漢字 😀"), "Grüße 漢字 😀");
}

TEST(Html, JsonInsideAScriptCannotEndItAndReadsBackTheSame) {
  const base::Json value = {{"text", kHostile}};
  const std::string json = script_json(value);
  for (const char* forbidden : {"<", ">", "&", "'", "\u2028", "\u2029"})
    EXPECT_EQ(json.find(forbidden), std::string::npos) << forbidden;
  EXPECT_EQ(base::parse_json(json), value);
}

TEST(Html, TableEscapesCellsAndMarksWords) {
  Table table("<c>", {{"Name", "", true}, {"Value", "<u>"}});
  table.row({"<a>", "1"});
  const std::string html = table.html().str();
  EXPECT_NE(html.find("<caption>&lt;c&gt;</caption>"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\" class=\"words\">&lt;a&gt;</th><td>1</td>"), std::string::npos);
  EXPECT_NE(html.find("<span class=\"unit\">&lt;u&gt;</span>"), std::string::npos);
}

TEST(Charts, ThinsCurvesToMeansOfNeighbours) {
  Points points;
  for (int i = 0; i < 10; ++i) points.emplace_back(i, 2 * i);
  std::size_t stride = 0;
  const Points thin = thinned(points, 4, &stride);
  EXPECT_EQ(stride, 3u);
  EXPECT_EQ(thin, (Points{{1, 2}, {4, 8}, {7, 14}, {9, 18}}));
  EXPECT_EQ(thinned(points, 10), points);
}

TEST(Charts, GivesANameOneColour) {
  Palette palette;
  EXPECT_EQ(palette.color("teacher"), 0u);
  EXPECT_EQ(palette.color("student"), 1u);
  EXPECT_EQ(palette.color("teacher"), 0u);
}

}  // namespace
}  // namespace retort::report
