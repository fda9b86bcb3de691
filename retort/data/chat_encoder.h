#pragma once
// The chat template of a model as what a source of conversations is read with.

#include <ctime>
#include <memory>

#include "retort/base/files.h"
#include "retort/chat/conversation.h"
#include "retort/data/sequence.h"
#include "retort/text/tokenizer.h"

namespace retort::data {

/// The day that a template is told when it asks for the date, 26 July 2024, so that the same conversations
/// are the same tokens on every day.  It is what templates that ask take where nobody tells them one.
std::tm day_of_templates();

/// Writes conversations as the template of `model` has it, a directory or a GGUF file.  The template is read
/// with the first conversation: whoever reads plain text needs none.  Cheap to copy.
class ChatEncoder {
 public:
  ChatEncoder(base::Path model, text::Tokenizer tokenizer);

  /// Throws ModelError for a model without a chat template, DataError for what the template refuses.
  ChatTokens operator()(const chat::Conversation& conversation) const;

 private:
  struct Templates;
  std::shared_ptr<Templates> templates_;
};

}  // namespace retort::data
