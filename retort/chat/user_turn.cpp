#include "retort/chat/user_turn.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "retort/base/error.h"

namespace retort::chat {
namespace {

// They begin with different bytes and kinds of characters, so ids that all have before them are of the
// template alone.
constexpr std::array<std::string_view, 4> kMessages = {"Explain retort", "what is retort", "7 retort",
                                                       "(retort)"};

struct Around {
  std::vector<std::int32_t> ids;  ///< of the whole
  std::string before, after;
};

Around rendered_around(std::string_view message, const ChatTemplate& chat_template,
                       const text::Tokenizer& tokenizer, RenderOptions options) {
  options.add_generation_prompt = true;
  Conversation conversation;
  conversation.add("user", message);
  const auto text = chat_template.render(conversation, options).text;
  const auto at = text.find(message);
  base::require<base::ModelError>(
      at != std::string::npos, chat_template.where(),
      ": expected a chat template that writes a user's message as it is, found one that changes it; give a "
      "file of questions.");
  return {tokenizer.encode(text, false), text.substr(0, at), text.substr(at + message.size())};
}

std::vector<std::int32_t> common_beginning(const std::vector<std::int32_t>& a,
                                           const std::vector<std::int32_t>& b) {
  return {a.begin(), std::ranges::mismatch(a, b).in1};
}

// Up to the end of its line, without spaces around it.
std::string first_words(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  text = text.substr(begin, text.find('\n', begin) - begin);
  return std::string(text.substr(0, text.find_last_not_of(" \t\r") + 1));
}

}  // namespace

UserTurn user_turn(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                   const RenderOptions& options) {
  UserTurn turn;
  std::optional<Around> first;
  for (const auto message : kMessages) {
    auto around = rendered_around(message, chat_template, tokenizer, options);
    if (!first) {
      turn.before = around.ids;
      first = std::move(around);
      continue;
    }
    base::require<base::ModelError>(
        around.before == first->before, chat_template.where(),
        ": expected a chat template that begins alike whatever the user says, found one that does not; give "
        "a file of questions.");
    turn.before = common_beginning(turn.before, around.ids);
  }
  base::require<base::ModelError>(!turn.before.empty(), chat_template.where(),
                                  ": expected a chat template that writes something before the user's "
                                  "message, found none; give a file of questions.");
  turn.end = first_words(first->after);
  bool is_token = false;
  for (const auto& token : tokenizer.added_tokens()) {
    const bool closes = !token.content.empty() && turn.end.starts_with(token.content);
    is_token = is_token || closes;
    if (closes || token.special) turn.end_ids.push_back(token.id);
  }
  if (is_token) turn.end.clear();
  return turn;
}

}  // namespace retort::chat
