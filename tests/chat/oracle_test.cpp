// Text, answers and ids are those of transformers (tests/oracles/chat.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/chat/encode.h"
#include "support/outside_data.h"

namespace retort::chat {
namespace {

using base::Json;

std::vector<Json> lines_of_oracle(const char* name) {
  const std::string content = base::read_file(test::oracles("chat") / name);
  std::vector<Json> lines;
  for (std::size_t start = 0; start < content.size();) {
    const auto end = content.find('\n', start);
    lines.push_back(base::parse_json(std::string_view(content).substr(start, end - start)));
    start = end + 1;
  }
  return lines;
}

std::tm time_of(const Json& parts) {
  std::tm now{};
  now.tm_year = parts[0].get<int>() - 1900;
  now.tm_mon = parts[1].get<int>() - 1;
  now.tm_mday = parts[2].get<int>();
  now.tm_hour = parts[3].get<int>();
  now.tm_min = parts[4].get<int>();
  return now;
}

RenderOptions options_of(const Json& line) {
  const Json& given = line.at("options");
  RenderOptions options;
  options.add_generation_prompt = given.value("add_generation_prompt", false);
  options.continue_final_message = given.value("continue_final_message", false);
  if (given.contains("extra")) options.variables = given.at("extra");
  if (line.contains("now")) options.now = time_of(line.at("now"));
  return options;
}

ChatTemplate template_of(const Json& line) {
  TemplateVariables variables;
  for (const auto& [name, value] : line.at("variables").items())
    variables.emplace_back(name, value.get<std::string>());
  return ChatTemplate::parse(line.at("template").get<std::string>(), "template", variables);
}

RenderedConversation rendered(const Json& line) {
  return template_of(line).render(read_conversation(line.at("conversation"), "case"), options_of(line));
}

TEST(ChatTemplateOracle, TextAndAnswersAreThoseOfTransformers) {
  std::size_t equal = 0, refused = 0;
  for (const Json& line : lines_of_oracle("cases.jsonl")) {
    SCOPED_TRACE(line.at("name").get<std::string>() + "\n" + line.at("conversation").dump());
    if (line.contains("refused")) {
      ++refused;
      EXPECT_THROW((void)rendered(line), base::Error) << line.at("refused");
      continue;
    }
    ++equal;
    RenderedConversation got;
    ASSERT_NO_THROW(got = rendered(line));
    EXPECT_EQ(got.text, line.at("text").get<std::string>());
    if (!options_of(line).continue_final_message) {
      EXPECT_EQ(got.answers, line.at("answers").get<std::vector<Span>>());
    }
  }
  EXPECT_GE(equal, 100U);
  EXPECT_GE(refused, 25U);
}

TEST(ChatTemplateOracle, IdsAreThoseOfTransformers) {
  const auto tokenizer = text::Tokenizer::from_file(test::oracles("chat") / "tokenizer/tokenizer.json");
  const auto lines = lines_of_oracle("ids.jsonl");
  EXPECT_GE(lines.size(), 10U);
  for (const Json& line : lines) {
    SCOPED_TRACE(line.at("conversation").dump());
    const auto conversation = read_conversation(line.at("conversation"), "case");
    const auto chat_template = template_of(line);
    const auto options = options_of(line);
    const auto plain = encode_conversation(chat_template, tokenizer, conversation, options);
    EXPECT_EQ(plain.ids, line.at("ids").get<std::vector<std::int32_t>>());
    const auto escaped =
        encode_conversation(chat_template, tokenizer, conversation, options, InjectedTokens::escaped);
    EXPECT_EQ(escaped.ids, line.at("escaped").get<std::vector<std::int32_t>>());
    EXPECT_EQ(escaped.rendered.text, plain.rendered.text);
  }
}

}  // namespace
}  // namespace retort::chat
