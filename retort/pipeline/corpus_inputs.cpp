#include "retort/pipeline/corpus_inputs.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/utf8.h"

namespace retort::pipeline {
namespace {

constexpr std::string_view kBlanks = " \t\r";

struct Line {
  std::string text;
  std::string where;  ///< file and number, for errors
};

// Those that are not blank.
std::vector<Line> lines_of(const base::Path& path) {
  const auto text = base::read_file(path);
  std::vector<Line> lines;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    auto line = text.substr(begin, end - begin);
    begin = end + 1;
    const auto where = base::join(path.string(), ":", ++number);
    if (line.find_first_not_of(kBlanks) == std::string::npos) continue;
    if (line.ends_with('\r')) line.pop_back();
    base::require<base::DataError>(base::is_utf8(line), where,
                                   ": expected text in UTF-8, found other bytes; convert it by iconv.");
    lines.push_back({std::move(line), where});
  }
  base::require<base::DataError>(!lines.empty(), path.string(),
                                 ": expected at least one line with text, found none; write one.");
  return lines;
}

bool are_json(const std::vector<Line>& lines) {
  const auto& first = lines.front().text;
  return first[first.find_first_not_of(kBlanks)] == '{';
}

base::Json parsed(const Line& line, const char* expected) {
  base::Json json;
  try {
    json = base::parse_json(line.text);
  } catch (const base::JsonFault& fault) {
    throw base::DataError(base::join(line.where, ": expected ", expected, ", found no JSON at byte ",
                                     fault.byte, " (", fault.reason, "); correct the line."));
  }
  base::require<base::DataError>(json.is_object(), line.where, ": expected ", expected,
                                 ", found no object; correct the line.");
  return json;
}

const std::string* text_in(const base::Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
}

chat::Conversation question_in(const Line& line) {
  constexpr const char* kExpected = R"({"prompt": TEXT} or {"messages": [...]})";
  const auto json = parsed(line, kExpected);
  if (json.contains("messages")) {
    auto conversation = chat::read_conversation(json, line.where);
    auto& messages = conversation.messages;
    if (messages.back().at("role") == "assistant") messages.erase(messages.size() - 1);
    base::require<base::DataError>(!messages.empty(), line.where,
                                   ": expected a conversation with a question, found an answer alone; "
                                   "put the question before it.");
    return conversation;
  }
  const auto* prompt = text_in(json, "prompt");
  base::require<base::DataError>(prompt != nullptr, line.where, ": expected ", kExpected,
                                 ", found neither; correct the line.");
  chat::Conversation conversation;
  conversation.add("user", *prompt);
  return conversation;
}

std::string start_in(const Line& line) {
  constexpr const char* kExpected = R"({"text": TEXT} or {"prompt": TEXT})";
  const auto json = parsed(line, kExpected);
  for (const char* key : {"text", "prompt"})
    if (const auto* text = text_in(json, key)) return *text;
  throw base::DataError(
      base::join(line.where, ": expected ", kExpected, ", found neither; correct the line."));
}

}  // namespace

std::vector<chat::Conversation> read_questions(const base::Path& path) {
  std::vector<chat::Conversation> questions;
  const auto lines = lines_of(path);
  const bool json = are_json(lines);
  for (const auto& line : lines) {
    if (json)
      questions.push_back(question_in(line));
    else
      questions.emplace_back().add("user", line.text);
  }
  return questions;
}

std::vector<std::string> read_starts(const base::Path& path) {
  std::vector<std::string> starts;
  const auto lines = lines_of(path);
  const bool json = are_json(lines);
  for (const auto& line : lines) starts.push_back(json ? start_in(line) : line.text);
  return starts;
}

}  // namespace retort::pipeline
