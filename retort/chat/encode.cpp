#include "retort/chat/encode.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "retort/base/error.h"
#include "retort/chat/code_points.h"
#include "retort/io/quote.h"
#include "retort/text/added_tokens.h"

namespace retort::chat {
namespace {

using base::Json;

// They stand around a token in a message while the template is rendered: U+F0000 and U+F0001, which are for
// private use and are taken out of messages first.
constexpr std::string_view kTokenBegin = "\U000F0000", kTokenEnd = "\U000F0001";

// Tokens that steer the model: special ones, and those that the template writes.
std::vector<text::AddedToken> control_tokens(const ChatTemplate& chat_template,
                                             const text::Tokenizer& tokenizer) {
  std::vector<text::AddedToken> tokens;
  for (const auto& token : tokenizer.added_tokens()) {
    const auto& content = token.content;
    const bool written =
        std::any_of(chat_template.literals().begin(), chat_template.literals().end(),
                    [&](const std::string& text) { return text.find(content) != text.npos; });
    const bool blank = leading_space(content) == content.size();
    if (!content.empty() && (token.special || (written && !blank))) tokens.push_back(token);
  }
  return tokens;
}

void mark(Json& value, const text::AddedTokenFinder& finder) {
  if (value.is_object() || value.is_array()) {
    for (Json& item : value) mark(item, finder);
    return;
  }
  if (!value.is_string()) return;
  auto text = replaced(value.get_ref<const std::string&>(), kTokenBegin, "", -1);
  text = replaced(text, kTokenEnd, "", -1);
  std::string marked;
  for (const auto& part : finder.cut(text)) {
    if (part.token != nullptr) marked += kTokenBegin;
    marked += part.text;
    if (part.token != nullptr) marked += kTokenEnd;
  }
  value = marked;
}

// Encodes what a rendered conversation is cut into.
class PieceEncoder {
 public:
  explicit PieceEncoder(const text::Tokenizer& tokenizer)
      : tokenizer_(tokenizer), newline_(tokenizer.encode("\n", false)) {}

  void add_first(std::string_view piece) { append(tokenizer_.encode(piece, false)); }
  // A piece within the text.  It is encoded behind a newline, so that no space is put before it as before a
  // text's beginning.
  void add(std::string_view piece, bool as_text) {
    if (piece.empty()) return;
    const auto encode = [&](std::string_view text) {
      return as_text ? tokenizer_.encode_as_plain_text(text) : tokenizer_.encode(text, false);
    };
    auto ids = encode("\n" + std::string(piece));
    const bool begins =
        ids.size() >= newline_.size() && std::equal(newline_.begin(), newline_.end(), ids.begin());
    if (begins)
      ids.erase(ids.begin(), ids.begin() + std::ssize(newline_));
    else
      ids = encode(piece);
    const auto token = as_text ? tokenizer_.token_to_id(piece).value_or(-1) : -1;
    base::require<base::DataError>(std::find(ids.begin(), ids.end(), token) == ids.end(), "the token ",
                                   io::quote(piece),
                                   " cannot be written as text, since the tokenizer makes it of text as "
                                   "well; take it out of the conversation.");
    append(ids);
  }
  std::vector<std::int32_t> take() { return std::move(ids_); }

 private:
  void append(const std::vector<std::int32_t>& ids) { ids_.insert(ids_.end(), ids.begin(), ids.end()); }

  const text::Tokenizer& tokenizer_;
  std::vector<std::int32_t> newline_, ids_;
};

// Cuts at the marks.  A mark whose fellow the template has cut off still divides the text.
std::vector<std::int32_t> encode_marked(std::string_view text, const text::AddedTokenFinder& finder,
                                        const text::Tokenizer& tokenizer) {
  PieceEncoder encoder(tokenizer);
  bool is_first = true;
  const auto add = [&](std::string_view piece, bool as_text) {
    if (is_first && !as_text)
      encoder.add_first(piece);
    else
      encoder.add(piece, as_text);
    is_first = false;
  };
  for (;;) {
    const auto at = std::min(text.find(kTokenBegin), text.find(kTokenEnd));
    add(text.substr(0, at), false);
    if (at == text.npos) return encoder.take();
    const bool begins = text.substr(at).starts_with(kTokenBegin);
    text.remove_prefix(at + kTokenBegin.size());
    const auto end = text.find(kTokenEnd);
    const auto parts =
        begins && end != text.npos ? finder.cut(text.substr(0, end)) : std::vector<text::TextPart>();
    if (parts.size() != 1 || parts.front().token == nullptr) continue;
    add(text.substr(0, end), true);
    text.remove_prefix(end + kTokenEnd.size());
  }
}

// What a rendered text shows: the marks taken out.
std::string without_marks(std::string_view text) {
  return replaced(replaced(text, kTokenBegin, "", -1), kTokenEnd, "", -1);
}

}  // namespace

EncodedConversation encode_conversation(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                                        const Conversation& conversation, const RenderOptions& options,
                                        InjectedTokens injected) {
  if (injected == InjectedTokens::recognised) {
    auto rendered = chat_template.render(conversation, options);
    auto ids = tokenizer.encode(rendered.text, false);
    return {std::move(ids), std::move(rendered)};
  }
  const auto tokens = control_tokens(chat_template, tokenizer);
  text::AddedTokenFinder finder, all;
  for (const auto& token : tokens) finder.add(token.content, token);
  const auto added = tokenizer.added_tokens();
  for (const auto& token : added)
    if (!token.content.empty()) all.add(token.content, token);
  Conversation marked = conversation;
  RenderOptions marked_options = options;
  for (Json* json : {&marked.messages, &marked.tools, &marked.documents, &marked_options.variables})
    mark(*json, finder);
  auto rendered = chat_template.render(marked, marked_options);
  auto ids = encode_marked(rendered.text, all, tokenizer);
  rendered.text = without_marks(rendered.text);
  rendered.answers.clear();  // they count the marks
  return {std::move(ids), std::move(rendered)};
}

}  // namespace retort::chat
