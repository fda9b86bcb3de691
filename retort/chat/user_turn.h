#pragma once
// What a chat template writes around the first message of a user: a model that was trained on conversations
// goes on with a question where such a message would stand.
//
// Source: Xu et al. 2024, "Magpie", arXiv 2406.08464, section 2; here for any template.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/chat/chat_template.h"
#include "retort/text/tokenizer.h"

namespace retort::chat {

struct UserTurn {
  std::vector<std::int32_t> before;   ///< ids up to the message, of whatever it begins with
  std::vector<std::int32_t> end_ids;  ///< special tokens, each of which ends the message
  std::string end;  ///< text that ends the message where the template writes no token behind it; may be empty
};

/// Found by rendering short messages.  Throws ModelError where the template does not write a message as it
/// is, or writes something else before each.
UserTurn user_turn(const ChatTemplate& chat_template, const text::Tokenizer& tokenizer,
                   const RenderOptions& options = {});

}  // namespace retort::chat
