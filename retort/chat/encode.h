#pragma once
// The ids of a conversation.

#include <cstdint>
#include <vector>

#include "retort/chat/chat_template.h"
#include "retort/text/tokenizer.h"

namespace retort::chat {

/// What a special token means that a message has as text, such as <|im_end|> in a user's question.
enum class InjectedTokens {
  recognised,  ///< it is that token, as apply_chat_template has it by default
  escaped,     ///< it is text, as with sanitize_control_tokens; only the template writes tokens
};

struct EncodedConversation {
  std::vector<std::int32_t> ids;
  RenderedConversation rendered;
};

/// Renders and encodes; ids equal those of apply_chat_template.  Nothing is put around the text, since the
/// template writes special tokens itself.  Throws what render() and encode() throw, and DataError where an
/// escaped token cannot be written as text.
EncodedConversation encode_conversation(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                                        const Conversation& conversation, const RenderOptions& options = {},
                                        InjectedTokens injected = InjectedTokens::recognised);

}  // namespace retort::chat
