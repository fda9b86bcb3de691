#pragma once
// A conversation with one or two models.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/pipeline/pipeline.h"

namespace retort::pipeline {

struct ChatRequest {
  std::vector<ModelRequest> models;  ///< that answer, each in its own conversation
  TextRequest text;
  std::string system;           ///< message; empty: as the template has it
  std::int64_t context = 4096;  ///< tokens of a conversation, at most what the model was made for
};

/// Whoever the models talk with.
class ChatPartner {
 public:
  virtual ~ChatPartner() = default;
  /// The next message; nothing at the end.  `/reset` begins anew, `/system TEXT` too, with that message.
  virtual std::optional<std::string> ask() = 0;
  /// An answer begins.
  virtual void begin(const std::string& model) = 0;
  /// What follows of the answer: whole characters.
  virtual void say(std::string_view piece) = 0;
  /// The answer is whole; `note` says why it ends early, or is empty.
  virtual void end(std::string_view note) = 0;
  /// True ends the answer; asked after each token.
  virtual bool stops() = 0;
};

/// Returns when the partner has no more to say.  Throws what generate() throws, and ModelError for a model
/// without a chat template.
void chat(const ChatRequest& request, ChatPartner& partner, record::Observer& observer);

}  // namespace retort::pipeline
