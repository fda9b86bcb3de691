#pragma once
// Conversations as data sets have them.  A document of such a source is one conversation as JSON, in one form
// whatever the file's: what is held out does not depend on a model, nor on how a file writes its turns.

#include <string>
#include <string_view>

#include "retort/base/json.h"
#include "retort/chat/conversation.h"

namespace retort::data {

/// A record as a document's text: {"messages": [...]}, and "tools" where it has some.  Its keys tell the
/// form, the first that fits: `field`, where that is not "text", or `messages`, a list with `role` and
/// `content`; `conversations`, a list with `from` and `value`, or the former two; `prompt` and `completion`,
/// texts or lists of messages; `instruction`, `input` and `output`.  Throws JsonFault for what is no
/// conversation: an unknown role, a message without text, an empty answer.
std::string conversation_text(const base::Json& record, std::string_view field);

/// The conversation of such a text.
chat::Conversation conversation_of(std::string_view text);

/// What is said in it, message after message, without roles: for a search in other text.
std::string spoken_text(std::string_view text);

}  // namespace retort::data
