#include "retort/tasks/messages.h"

#include "retort/chat/code_points.h"

namespace retort::tasks {
namespace {

using base::Json;

Json to_json(const Message& message) {
  return {{"role", message.role}, {"content", message.content}};
}

std::string joined(const std::vector<Message>& messages, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += i + 1 == end ? messages[i].content : messages[i].text();
  return text;
}

// All turns in one message of the user, between a system message and what the answer begins with.
Json in_one_turn(const std::vector<Message>& messages) {
  Json out = Json::array();
  const std::size_t begin = messages.front().role == "system" ? 1 : 0;
  if (begin == 1) out.push_back(to_json(messages.front()));
  const bool begun = messages.back().role == "assistant";
  const std::size_t end = messages.size() - (begun ? 1 : 0);
  out.push_back(to_json({"user", joined(messages, begin, end), ""}));
  if (begun) out.push_back(to_json(messages.back()));
  return out;
}

}  // namespace

bool begins_with_space(std::string_view text) {
  return chat::leading_space(text) > 0;
}
bool ends_with_space(std::string_view text) {
  return chat::trailing_space(text) > 0;
}

std::string delimited(const std::string& prefix, const std::string& suffix, const std::string& delimiter) {
  if (prefix.empty()) return suffix;
  if (suffix.empty()) return prefix;
  const bool apart = ends_with_space(prefix) || begins_with_space(suffix);
  return apart ? prefix + suffix : prefix + delimiter + suffix;
}

void add_turn(std::vector<Message>& messages, const Turn& turn) {
  const bool has_answer = turn.answer && !turn.answer->empty();
  const bool needs_delimiter =
      turn.prefix.empty()
          ? has_answer
          : !turn.question.empty() && !ends_with_space(turn.question) && !begins_with_space(turn.prefix);
  messages.push_back({"user", turn.question, needs_delimiter ? turn.target_delimiter : ""});
  if (has_answer)
    messages.push_back({"assistant", delimited(turn.prefix, *turn.answer, " "), turn.fewshot_delimiter});
  else if (!turn.prefix.empty())
    messages.push_back({"assistant", turn.prefix, ""});
}

std::string written(const std::vector<Message>& messages, const PromptOptions& options, bool has_prefix) {
  if (!options.chat) {
    std::string text;
    for (const auto& message : messages) text += message.text();
    return text;
  }
  if (!options.fewshot_as_multiturn) return options.chat(in_one_turn(messages), !has_prefix);
  Json list = Json::array();
  for (const auto& message : messages) list.push_back(to_json(message));
  return options.chat(list, !has_prefix);
}

}  // namespace retort::tasks
