#pragma once
// Prompts as messages of a conversation, which become plain text or what a chat template writes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/json.h"
#include "retort/tasks/requests.h"

namespace retort::tasks {

struct Message {
  std::string role, content;
  std::string delimiter;  ///< behind the content in plain text

  std::string text() const { return content + delimiter; }
};

bool begins_with_space(std::string_view text);
bool ends_with_space(std::string_view text);

/// Both texts, with the delimiter between them where neither has white space there.
std::string delimited(const std::string& prefix, const std::string& suffix, const std::string& delimiter);

/// A question, with its answer where there is one.
struct Turn {
  std::string question;
  std::optional<std::string> answer;
  std::string prefix;  ///< what the answer begins with
  std::string target_delimiter, fewshot_delimiter;
};
void add_turn(std::vector<Message>& messages, const Turn& turn);

/// As plain text, or as `options.chat` writes it.
std::string written(const std::vector<Message>& messages, const PromptOptions& options, bool has_prefix);

}  // namespace retort::tasks
