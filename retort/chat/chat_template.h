#pragma once
// A model's chat template: the Jinja by which it wants a conversation written.  An interpreter of our own
// renders it, with the semantics that transformers gives its sandbox, and bounded work (docs/chat.md).

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/json.h"
#include "retort/chat/conversation.h"

namespace retort::chat {

/// Names that a template finds whatever the conversation: bos_token, eos_token and so on.
using TemplateVariables = std::vector<std::pair<std::string, std::string>>;

struct RenderOptions {
  /// Ends with what precedes an answer of the model.
  bool add_generation_prompt = false;
  /// Ends within the last message, which the model is to go on with.  Not with the above.
  bool continue_final_message = false;
  /// An object; its keys are names in the template, for example enable_thinking.
  base::Json variables = base::Json::object();
  /// What strftime_now tells; the machine's local time where it is not given.
  std::optional<std::tm> now = {};
};

/// First byte and the byte behind.
using Span = std::pair<std::size_t, std::size_t>;

struct RenderedConversation {
  std::string text;
  /// The answers, where the template marks them with {% generation %}.
  std::vector<Span> answers;
};

/// Immutable and cheap to copy; all functions may be called from several threads at once.
class ChatTemplate {
 public:
  /// Reads a template.  `where` names it in errors.  Throws ModelError for what is no template, or has a
  /// construct that Retort lacks, with its line.
  static ChatTemplate parse(std::string_view source, std::string where, TemplateVariables variables = {});

  /// The conversation as the model wants it; equal to apply_chat_template(tokenize=False) of transformers.
  /// Throws DataError, with the line, where the template refuses the conversation, does what Retort lacks, or
  /// exceeds a limit, and for options that do not fit.
  RenderedConversation render(const Conversation& conversation, const RenderOptions& options = {}) const;

  /// Whether it marks the answers.
  bool marks_answers() const;
  const std::string& where() const;
  /// Text that the template writes itself: its data and the texts in its expressions.
  const std::vector<std::string>& literals() const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace retort::chat
