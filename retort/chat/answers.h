#pragma once
// The ids of a conversation, and which of them the model is to write: those of the assistant's turns.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/chat/chat_template.h"
#include "retort/text/tokenizer.h"

namespace retort::chat {

/// A conversation whose answers are told from the rest.
struct AnsweredConversation {
  std::vector<std::int32_t> ids;  ///< as apply_chat_template(tokenize=True) gives them
  std::vector<char> is_answer;    ///< of each id
  std::string text;
  std::vector<Span> answers;  ///< in bytes of the text, each with the token that ends its turn
};

/// The answers of a rendered conversation, from first to last.  A template that marks them with
/// {% generation %} is believed.  Else an answer is what follows the text before it, written with
/// add_generation_prompt, up to the token that ends its turn; where a template writes earlier turns otherwise
/// than last ones, it is what stands around a text in the answer's place.  Throws DataError for an answer
/// that none of these finds.
std::vector<Span> answer_spans(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                               const Conversation& conversation, const RenderedConversation& rendered,
                               const RenderOptions& options = {});

/// Renders, encodes and finds the answers.  A token is an answer's as return_assistant_tokens_mask has it:
/// all from the one with the first character to the one with the last.  Throws what encode_conversation() and
/// answer_spans() throw, and DataError where a tokenizer
/// that changes text joins an answer with what is around it.
AnsweredConversation encode_answers(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                                    const Conversation& conversation, const RenderOptions& options = {});

/// The token that a template writes behind an answer; nothing where it writes none, or not at once.
std::optional<std::int32_t> end_of_turn(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer);

/// The first byte of `text` behind each id, where the ids' own texts are those of `text`; a tokenizer may put
/// a space before text, and a token may take white space along.  Nothing where the tokenizer changes text.
std::vector<std::size_t> token_ends(const text::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                                    std::string_view text);

}  // namespace retort::chat
