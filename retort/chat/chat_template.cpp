#include "retort/chat/chat_template.h"

#include <algorithm>
#include <functional>

#include "retort/base/error.h"
#include "retort/base/utf8.h"
#include "retort/chat/code_points.h"
#include "retort/chat/template_interpreter.h"
#include "retort/chat/template_parser.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

using base::DataError;
using base::Json;
using base::ModelError;
using base::require;

// What transformers puts behind the last message, to find where it ends.
constexpr std::string_view kEndTag = "CONTINUE_FINAL_MESSAGE_TAG ";

std::string sentence(const std::string& where, const TemplateFault& fault) {
  return base::join(where, ": the chat template", fault.line > 0 ? base::join(", line ", fault.line) : "",
                    ": ", fault.reason, ".");
}

void add_literals(const Expression& node, std::vector<std::string>& literals) {
  if (const auto* text = node.constant.text()) literals.push_back(*text);
  for (const auto& operand : node.operands)
    if (operand) add_literals(*operand, literals);
  for (const auto& [name, value] : node.named) add_literals(*value, literals);
}

void add_literals(const Block& block, std::vector<std::string>& literals) {
  for (const auto& statement : block) {
    if (!statement->text.empty()) literals.push_back(statement->text);
    for (const auto& expression : statement->expressions)
      if (expression) add_literals(*expression, literals);
    for (const auto& value : statement->signature.defaults) add_literals(*value, literals);
    for (const auto& inner : statement->blocks) add_literals(inner, literals);
  }
}

// As transformers hands messages over: without keys that are null, and reasoning under all its names.
Json handed_over(const Json& message) {
  Json out = Json::object();
  const Json* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"})
    if (const auto found = message.find(name);
        reasoning == nullptr && found != message.end() && !found->is_null())
      reasoning = &*found;
  if (reasoning != nullptr && (!message.contains("thinking") || message.at("thinking").is_null()))
    out["thinking"] = *reasoning;
  for (const auto& [key, value] : message.items())
    if (!value.is_null()) out[key] = value;
  if (reasoning != nullptr) out["reasoning_content"] = *reasoning;
  return out;
}

// The text of the last message, with the mark behind it; the text itself is returned.
std::string mark_end(Json& messages, const std::string& where) {
  Json& last = messages.back();
  Json* text = last.contains("content") ? &last["content"] : nullptr;
  if (text != nullptr && text->is_array()) {
    Json* part = nullptr;
    for (Json& one : *text)
      if (one.is_object() && one.contains("text")) part = &one["text"];
    text = part;
  }
  require<DataError>(text != nullptr && text->is_string(), where,
                     ": the last message has no text to go on with; give it a \"content\".");
  auto plain = text->get<std::string>();
  *text = plain + std::string(kEndTag);
  return plain;
}

// What stands before the mark; white space goes where the template took that of the mark.
void cut_at_mark(std::string& text, const std::string& last, const std::string& where) {
  const auto mark = kEndTag.substr(0, kEndTag.size() - 1);
  const auto at = text.rfind(mark);
  const bool there = at != text.npos && text.find(strip(last, nullptr, Ends::both)) != text.npos;
  require<DataError>(
      there, where,
      ": the chat template leaves out parts of the last message, so the model cannot go on with it; "
      "end with a message of the user.");
  const bool whole = std::string_view(text).substr(at).starts_with(kEndTag);
  text.resize(at);
  if (!whole) text.resize(text.size() - trailing_space(text));
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return local;
}

}  // namespace

struct ChatTemplate::State {
  Syntax syntax;
  std::string source, where;
  TemplateVariables variables;
  std::vector<std::string> literals;
};

ChatTemplate ChatTemplate::parse(std::string_view source, std::string where, TemplateVariables variables) {
  require<ModelError>(base::is_utf8(source), where, ": the chat template is not UTF-8; save it as such.");
  auto state = std::make_shared<State>();
  try {
    state->syntax = parse_template(source);
  } catch (const TemplateFault& fault) {
    throw ModelError(sentence(where, fault));
  }
  state->source = source;
  state->where = std::move(where);
  state->variables = std::move(variables);
  add_literals(state->syntax.body, state->literals);
  return ChatTemplate(std::move(state));
}

bool ChatTemplate::marks_answers() const {
  return state_->syntax.has_generation;
}
const std::string& ChatTemplate::where() const {
  return state_->where;
}
const std::vector<std::string>& ChatTemplate::literals() const {
  return state_->literals;
}

RenderedConversation ChatTemplate::render(const Conversation& conversation,
                                          const RenderOptions& options) const {
  require<DataError>(!conversation.empty(), where(), ": the conversation has no message; give it one.");
  require<DataError>(
      !options.continue_final_message || !options.add_generation_prompt, where(),
      ": either the last message is gone on with, or another one begins; choose one of the two.");
  Json messages = Json::array();
  for (const Json& message : conversation.messages) messages.push_back(handed_over(message));
  std::string last;
  if (options.continue_final_message) last = mark_end(messages, where());
  try {
    std::vector<std::pair<std::string, Value>> variables;
    for (const auto& [name, text] : state_->variables) variables.emplace_back(name, text);
    for (const auto& [name, value] : options.variables.items())
      variables.emplace_back(name, from_json(value));
    variables.emplace_back("messages", from_json(messages));
    variables.emplace_back("tools", from_json(conversation.tools));
    variables.emplace_back("documents", from_json(conversation.documents));
    variables.emplace_back("add_generation_prompt", options.add_generation_prompt);
    auto rendering =
        retort::chat::render(state_->syntax, std::move(variables), options.now ? *options.now : local_time());
    if (options.continue_final_message) cut_at_mark(rendering.text, last, where());
    for (Span& answer : rendering.answers) answer.second = std::min(answer.second, rendering.text.size());
    return {std::move(rendering.text), std::move(rendering.answers)};
  } catch (const TemplateFault& fault) {
    throw DataError(sentence(where(), fault));
  }
}

}  // namespace retort::chat
