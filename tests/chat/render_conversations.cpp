// For tools/compare_chat_templates.py and tools/compare_answers.py: renders conversations that come as lines
// of JSON and writes a line for each.
//   in: {"template", "variables": {...}, "conversation", "add_generation_prompt", "continue_final_message",
//        "extra": {...}, "now": [year, month, day, hour, minute, second], "tokenizer", "escape",
//        "find_answers": those of a template that marks none}
//   out: {"text", "answers", "ids"} or {"refused"}
#include <iostream>
#include <map>
#include <string>

#include "retort/base/error.h"
#include "retort/chat/answers.h"
#include "retort/chat/encode.h"

using namespace retort;

namespace {

std::tm time_of(const base::Json& parts) {
  std::tm now{};
  now.tm_year = parts[0].get<int>() - 1900;
  now.tm_mon = parts[1].get<int>() - 1;
  now.tm_mday = parts[2].get<int>();
  now.tm_hour = parts[3].get<int>();
  now.tm_min = parts[4].get<int>();
  now.tm_sec = parts[5].get<int>();
  std::mktime(&now);
  return now;
}

chat::RenderOptions options_of(const base::Json& line) {
  chat::RenderOptions options;
  options.add_generation_prompt = line.value("add_generation_prompt", false);
  options.continue_final_message = line.value("continue_final_message", false);
  if (line.contains("extra")) options.variables = line.at("extra");
  if (line.contains("now")) options.now = time_of(line.at("now"));
  return options;
}

const text::Tokenizer& tokenizer_of(const std::string& path) {
  static std::map<std::string, text::Tokenizer> known;
  if (const auto found = known.find(path); found != known.end()) return found->second;
  return known.emplace(path, text::Tokenizer::from_file(path)).first->second;
}

base::Json answer(const base::Json& line) {
  chat::TemplateVariables variables;
  if (line.contains("variables"))
    for (const auto& [name, value] : line.at("variables").items())
      variables.emplace_back(name, value.get<std::string>());
  const auto chat_template =
      chat::ChatTemplate::parse(line.at("template").get<std::string>(), "template", variables);
  const auto conversation = chat::read_conversation(line.at("conversation"), "conversation");
  if (!line.contains("tokenizer")) {
    const auto rendered = chat_template.render(conversation, options_of(line));
    return {{"text", rendered.text}, {"answers", rendered.answers}};
  }
  if (line.value("find_answers", false)) {
    const auto found = chat::encode_answers(
        chat_template, tokenizer_of(line.at("tokenizer").get<std::string>()), conversation, options_of(line));
    return {{"text", found.text}, {"answers", found.answers}, {"ids", found.ids}};
  }
  const auto encoded = chat::encode_conversation(
      chat_template, tokenizer_of(line.at("tokenizer").get<std::string>()), conversation, options_of(line),
      line.value("escape", false) ? chat::InjectedTokens::escaped : chat::InjectedTokens::recognised);
  return {{"text", encoded.rendered.text}, {"answers", encoded.rendered.answers}, {"ids", encoded.ids}};
}

}  // namespace

int main() {
  std::string text;
  while (std::getline(std::cin, text)) {
    base::Json out;
    try {
      out = answer(base::parse_json(text, {.max_bytes = std::size_t{1} << 28}));
    } catch (const base::Error& error) {
      out = {{"refused", error.what()}};
    } catch (const base::JsonFault& fault) {
      out = {{"refused", "the line is no JSON: " + fault.reason}};
    }
    std::cout << out.dump() << std::endl;
  }
}
