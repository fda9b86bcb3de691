// Regular expressions, draws, literals and templates are those of CPython and Jinja (tests/oracles/tasks.py).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/chat/python_regex.h"
#include "retort/chat/text_template.h"
#include "retort/tasks/python_literal.h"
#include "retort/tasks/python_random.h"
#include "support/outside_data.h"

namespace retort::tasks {
namespace {

using base::Json;

std::vector<Json> lines_of_oracle(const char* name) {
  const std::string content = base::read_file(test::oracles("tasks") / name);
  std::vector<Json> lines;
  for (std::size_t start = 0; start < content.size();) {
    const auto end = content.find('\n', start);
    lines.push_back(base::parse_json(std::string_view(content).substr(start, end - start)));
    start = end + 1;
  }
  return lines;
}

Json spans_of(const std::vector<chat::PythonRegex::Match>& matches) {
  Json all = Json::array();
  for (const auto& match : matches) {
    Json groups = Json::array();
    for (const auto& span : match) groups.push_back(span ? Json::array({span->first, span->second}) : Json());
    all.push_back(std::move(groups));
  }
  return all;
}

// What a regular expression finds, or why it does not.
void compare_regex(const Json& line, std::size_t& lacking) {
  SCOPED_TRACE(line.dump());
  try {
    const auto regex = chat::PythonRegex::parse(line.at("pattern").get<std::string>());
    const auto text = line.at("text").get<std::string>();
    const Json found = spans_of(regex.find_all(text));
    if (line.contains("spans")) {
      EXPECT_EQ(found, line.at("spans"));
    }
    if (!line.contains("replacement")) {
      EXPECT_FALSE(line.contains("refused"));
      return;
    }
    const auto replaced = regex.replaced(text, line.at("replacement").get<std::string>());
    ASSERT_TRUE(line.contains("replaced"));
    EXPECT_EQ(replaced, line.at("replaced").get<std::string>());
  } catch (const chat::RegexFault& fault) {
    if (line.contains("refused")) return;
    const bool bounded = fault.reason == "takes too many steps" || fault.reason.ends_with("Retort lacks");
    EXPECT_TRUE(bounded) << fault.reason;
    ++lacking;
  }
}

TEST(TasksOracle, RegularExpressionsFindWhatPythonFinds) {
  const auto lines = lines_of_oracle("regex.jsonl");
  std::size_t lacking = 0;
  for (const Json& line : lines) compare_regex(line, lacking);
  EXPECT_GT(lines.size(), 4000U);
  EXPECT_LT(lacking, 10U);
}

TEST(TasksOracle, DrawsAreThoseOfCPython) {
  std::size_t draws = 0;
  for (const Json& line : lines_of_oracle("samples.jsonl")) {
    PythonRandom random(line.at("seed").get<std::uint64_t>());
    for (const Json& draw : line.at("draws")) {
      ++draws;
      ASSERT_EQ(random.sample(draw[0].get<std::size_t>(), draw[1].get<std::size_t>()),
                draw[2].get<std::vector<std::size_t>>())
          << line.at("seed") << " " << draw;
    }
    for (const Json& choice : line.at("choices")) EXPECT_EQ(random.choice(1000), choice.get<std::size_t>());
  }
  EXPECT_GE(draws, 900U);
}

TEST(TasksOracle, LiteralsAreThoseOfPython) {
  for (const Json& line : lines_of_oracle("literals.jsonl")) {
    SCOPED_TRACE(line.dump());
    const auto text = line.at("text").get<std::string>();
    if (line.contains("refused")) {
      EXPECT_THROW((void)python_literal(text), LiteralFault);
      continue;
    }
    Json value;
    ASSERT_NO_THROW(value = python_literal(text));
    EXPECT_EQ(value.dump(), line.at("value").dump());
  }
}

TEST(TasksOracle, TemplatesAreThoseOfJinjaWithStrictUndefined) {
  std::size_t equal = 0, refused = 0;
  for (const Json& line : lines_of_oracle("templates.jsonl")) {
    SCOPED_TRACE(line.dump());
    const auto rendered = [&] {
      return chat::TextTemplate::parse(line.at("template").get<std::string>(), "t")
          .render(line.at("doc"), "d");
    };
    if (line.contains("refused")) {
      ++refused;
      EXPECT_THROW((void)rendered(), base::Error);
      continue;
    }
    ++equal;
    std::string text;
    ASSERT_NO_THROW(text = rendered());
    EXPECT_EQ(text, line.at("text").get<std::string>());
  }
  EXPECT_GE(equal, 60U);
  EXPECT_GE(refused, 25U);
}

}  // namespace
}  // namespace retort::tasks
