#include "retort/chat/answers.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "retort/base/error.h"
#include "retort/chat/encode.h"

namespace retort::chat {
namespace {

using base::DataError;
using base::Json;

constexpr std::string_view kSpace = " \t\r\n";

std::size_t leading_blanks(std::string_view text) {
  return std::min(text.find_first_not_of(kSpace), text.size());
}

bool is_answer(const Json& message) {
  return message.value("role", "") == "assistant";
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto shorter = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + std::ptrdiff_t(shorter), b.begin()).first - a.begin());
}

// What a template writes before and behind a text in an answer's place.
struct Around {
  std::string before, behind;
};

// Finds the answers of one conversation by rendering its beginnings.
class AnswerFinder {
 public:
  AnswerFinder(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
               const Conversation& conversation, std::string_view whole, const RenderOptions& options)
      : template_(chat_template),
        conversation_(conversation),
        whole_(whole),
        options_(options),
        added_(tokenizer.added_tokens()) {
    for (const auto& token : added_)
      if (!token.content.empty()) finder_.add(token.content, token);
  }

  std::vector<Span> spans() const {
    std::vector<Span> spans;
    for (std::size_t i = 0; i < conversation_.messages.size(); ++i) {
      if (!is_answer(conversation_.messages[i])) continue;
      const auto span = span_of(i);
      const auto least = spans.empty() ? 0 : spans.back().second;
      base::require<DataError>(span && span->first >= least && span->second > span->first, template_.where(),
                               ": the answer in message ", i + 1,
                               " cannot be told from what the chat template writes around it; leave the "
                               "conversation out, or learn all of it with loss_on: all.");
      spans.push_back(*span);
    }
    return spans;
  }

 private:
  std::optional<Span> span_of(std::size_t message) const {
    auto begin = begin_of(message), end = end_of(message);
    if (!begin || !end) {
      const auto around = around_text(conversation_.messages, message);
      if (!around) return {};
      if (!begin && whole_.starts_with(around->before)) begin = around->before.size();
      if (!end && whole_.ends_with(around->behind)) end = end_before(message, around->behind);
    }
    if (!begin || !end || *end < *begin) return {};
    return Span{*begin, without_blanks_behind_token(*begin, *end)};
  }

  // Behind what asks for the answer.
  std::optional<std::size_t> begin_of(std::size_t message) const {
    if (message == 0) return {};
    const auto before = rendered(conversation_.messages, message, true);
    if (!before || !whole_.starts_with(*before)) return {};
    return before->size();
  }

  // Behind the answer, where it is written the same as the last one.
  std::optional<std::size_t> end_of(std::size_t message) const {
    if (message + 1 == conversation_.messages.size()) return whole_.size();
    const auto upto = rendered(conversation_.messages, message + 1, false);
    if (!upto || !whole_.starts_with(*upto)) return {};
    return upto->size();
  }

  // The same where the conversation ends with `behind`: that begins with what ends a turn, which is found
  // behind the answer when that is the last.
  std::size_t end_before(std::size_t message, std::string_view behind) const {
    Json beginning = conversation_.messages;
    beginning.erase(beginning.begin() + static_cast<std::ptrdiff_t>(message) + 1, beginning.end());
    const auto last = around_text(beginning, message);
    return whole_.size() - behind.size() + (last ? common_beginning(behind, last->behind) : 0);
  }

  // Bytes that both begin with, but none of a token that only one of them has.
  std::size_t common_beginning(std::string_view a, std::string_view b) const {
    const auto common = common_prefix(a, b);
    std::size_t begin = 0;
    for (const auto& part : finder_.cut(a)) {
      const auto end = begin + part.text.size();
      if (part.token && begin < common && common < end) return begin;
      begin = end;
    }
    return common;
  }

  // Nothing where the template writes the text not at all, or more than once.
  std::optional<Around> around_text(const Json& messages, std::size_t message) const {
    std::string mark = "answer0of0the0model";
    while (whole_.find(mark) != whole_.npos) mark += "0again";
    Json replaced = messages;
    Json& content = replaced[message]["content"];
    if (content.is_array())
      content = Json::array({{{"type", "text"}, {"text", mark}}});
    else
      content = mark;
    const auto text = rendered(replaced, replaced.size(), false);
    if (!text) return {};
    const auto at = text->find(mark);
    if (at == text->npos || text->find(mark, at + 1) != text->npos) return {};
    return Around{text->substr(0, at), text->substr(at + mark.size())};
  }

  // The first messages; nothing where the template refuses them.
  std::optional<std::string> rendered(const Json& messages, std::size_t count, bool asks) const {
    Conversation beginning = conversation_;
    beginning.messages = messages;
    beginning.messages.erase(beginning.messages.begin() + static_cast<std::ptrdiff_t>(count),
                             beginning.messages.end());
    RenderOptions options = options_;
    options.add_generation_prompt = asks;
    try {
      return template_.render(beginning, options).text;
    } catch (const DataError&) {
      return {};
    }
  }

  // A line's end behind the token that ends a turn belongs to the template.
  std::size_t without_blanks_behind_token(std::size_t begin, std::size_t end) const {
    const auto text = whole_.substr(begin, end - begin);
    const auto last = text.find_last_not_of(kSpace);
    if (last == text.npos) return end;
    const auto kept = text.substr(0, last + 1);
    const bool ends_turn = std::ranges::any_of(
        added_, [&](const auto& token) { return !token.content.empty() && kept.ends_with(token.content); });
    return ends_turn ? begin + kept.size() : end;
  }

  const ChatTemplate& template_;
  const Conversation& conversation_;
  std::string_view whole_;
  const RenderOptions& options_;
  std::vector<text::AddedToken> added_;
  text::AddedTokenFinder finder_;
};

// Where `piece` lies at or behind `at`: at once, without the space that a tokenizer puts before text, or
// behind white space that the token took along.  Nothing where it does not.
std::optional<std::size_t> end_of_piece(std::string_view text, std::size_t at, std::string_view piece) {
  const auto left = text.substr(at);
  if (left.starts_with(piece)) return at + piece.size();
  if (piece.starts_with(' ') && left.starts_with(piece.substr(1))) return at + piece.size() - 1;
  const auto blanks = leading_blanks(left);
  if (blanks > 0 && left.substr(blanks).starts_with(piece)) return at + blanks + piece.size();
  return {};
}

// The texts of tokens one behind the other: where a tokenizer changes text, what it made of it.
std::string joined_pieces(const text::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                          std::vector<std::size_t>* ends = nullptr) {
  std::string all;
  for (const auto id : ids) {
    all += tokenizer.token_bytes(id).value_or("");
    if (ends) ends->push_back(all.size());
  }
  return all;
}

// Tells which token has a byte.
class TokenPlaces {
 public:
  TokenPlaces(const text::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, std::string_view text)
      : tokenizer_(tokenizer), text_(text), ends_(token_ends(tokenizer, ids, text)) {
    if (ends_.empty()) changed_ = joined_pieces(tokenizer, ids, &ends_);
  }

  // The token with the byte at `place`.
  std::size_t with(std::size_t place) const {
    return index(std::upper_bound(ends_.begin(), ends_.end(), place_of(place)));
  }
  // The token behind the last one with a byte before `place`.
  std::size_t behind(std::size_t place) const {
    return std::min(ends_.size(), index(std::lower_bound(ends_.begin(), ends_.end(), place_of(place))) + 1);
  }

 private:
  std::size_t index(std::vector<std::size_t>::const_iterator found) const {
    return static_cast<std::size_t>(found - ends_.begin());
  }
  // In what the tokenizer made of the text: behind what it makes of the text before.
  std::size_t place_of(std::size_t place) const {
    if (!changed_) return place;
    const auto before = joined_pieces(tokenizer_, tokenizer_.encode(text_.substr(0, place), false));
    base::require<DataError>(changed_->starts_with(before),
                             "the tokens of an answer cannot be told from those around it, since the "
                             "tokenizer changes the text there; leave the conversation out, or learn all of "
                             "it with loss_on: all.");
    return before.size();
  }

  const text::Tokenizer& tokenizer_;
  std::string_view text_;
  std::vector<std::size_t> ends_;
  std::optional<std::string> changed_;
};

}  // namespace

std::optional<std::int32_t> end_of_turn(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer) {
  constexpr std::string_view kAnswer = "answer0of0the0model";
  Conversation conversation;
  conversation.add("user", "Hello");
  conversation.add("assistant", kAnswer);
  std::string text;
  try {
    text = chat_template.render(conversation).text;
  } catch (const DataError&) {
    return {};
  }
  const auto at = text.rfind(kAnswer);
  if (at == text.npos) return {};
  const auto added = tokenizer.added_tokens();
  text::AddedTokenFinder finder;
  for (const auto& token : added)
    if (!token.content.empty()) finder.add(token.content, token);
  for (const auto& part : finder.cut(std::string_view(text).substr(at + kAnswer.size())))
    if (part.token || leading_blanks(part.text) < part.text.size())
      return part.token ? std::optional(part.token->id) : std::nullopt;
  return {};
}

std::vector<std::size_t> token_ends(const text::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                                    std::string_view text) {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  for (const auto id : ids) {
    const auto piece = tokenizer.token_bytes(id);
    const auto end = piece ? end_of_piece(text, at, *piece) : std::nullopt;
    if (!end) return {};
    ends.push_back(at = *end);
  }
  if (leading_blanks(text.substr(at)) < text.size() - at) return {};
  return ends;
}

std::vector<Span> answer_spans(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                               const Conversation& conversation, const RenderedConversation& rendered,
                               const RenderOptions& options) {
  if (chat_template.marks_answers()) return rendered.answers;
  return AnswerFinder(chat_template, tokenizer, conversation, rendered.text, options).spans();
}

AnsweredConversation encode_answers(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                                    const Conversation& conversation, const RenderOptions& options) {
  auto encoded = encode_conversation(chat_template, tokenizer, conversation, options);
  AnsweredConversation answered{.ids = std::move(encoded.ids), .is_answer = {}, .text = {}, .answers = {}};
  answered.answers = answer_spans(chat_template, tokenizer, conversation, encoded.rendered, options);
  answered.text = std::move(encoded.rendered.text);
  answered.is_answer.assign(answered.ids.size(), 0);
  const TokenPlaces places(tokenizer, answered.ids, answered.text);
  for (const auto& [begin, end] : answered.answers) {
    if (end <= begin) continue;
    for (auto i = places.with(begin), last = places.behind(end); i < last; ++i) answered.is_answer[i] = 1;
  }
  return answered;
}

}  // namespace retort::chat
