#include "retort/data/conversations.h"

#include <array>
#include <limits>
#include <utility>

#include "retort/base/error.h"
#include "retort/data/records.h"
#include "retort/io/quote.h"

namespace retort::data {
namespace {

using base::Json;

[[noreturn]] void refuse(const std::string& reason) {
  throw base::JsonFault{reason, 0};
}

template <typename... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) refuse(base::join(parts...));
}

// What data sets call the roles, and what chat templates call them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kRoles{{{"system", "system"},
                                                                                {"developer", "developer"},
                                                                                {"user", "user"},
                                                                                {"human", "user"},
                                                                                {"prompter", "user"},
                                                                                {"assistant", "assistant"},
                                                                                {"gpt", "assistant"},
                                                                                {"chatgpt", "assistant"},
                                                                                {"model", "assistant"},
                                                                                {"bot", "assistant"},
                                                                                {"tool", "tool"},
                                                                                {"function", "tool"},
                                                                                {"observation", "tool"},
                                                                                {"function_response", "tool"},
                                                                                {"ipython", "ipython"},
                                                                                {"documents", "documents"}}};

std::string role_of(const std::string& word, std::size_t number) {
  for (const auto& [known, role] : kRoles)
    if (word == known) return std::string(role);
  refuse(base::join("message ", number, " has the unknown role ", io::quote(word),
                    ", expected system, user, assistant or tool"));
}

bool is_text(const Json& content) {
  if (content.is_string()) return true;
  if (!content.is_array()) return false;
  for (const Json& part : content)
    if (!part.is_object()) return false;
  return true;
}

bool is_blank(const Json& content) {
  if (content.is_array()) return content.empty();
  return content.get_ref<const std::string&>().find_first_not_of(" \t\r\n") == std::string::npos;
}

// Under the names that templates know; other keys, such as tool_calls, stay.
Json message_of(const Json& given, std::size_t number) {
  require(given.is_object(), "expected message ", number, " as an object, found ", io::shown(given));
  const char* role_key = given.contains("role") ? "role" : "from";
  const char* text_key = given.contains("role") || given.contains("content") ? "content" : "value";
  require(given.contains(role_key) && given.at(role_key).is_string(), "message ", number,
          " has no role, expected \"role\" and \"content\", or \"from\" and \"value\"");
  Json message = {{"role", role_of(given.at(role_key).get<std::string>(), number)}};
  const Json content = given.contains(text_key) ? given.at(text_key) : Json();
  const bool calls =
      given.contains("tool_calls") && given.at("tool_calls").is_array() && !given.at("tool_calls").empty();
  require(is_text(content) || (content.is_null() && calls), "message ", number, " has no text as ",
          io::quote(text_key), ", found ", io::shown(content));
  message["content"] = content.is_null() ? Json("") : content;
  require(message["role"] != "assistant" || calls || !is_blank(message["content"]), "message ", number,
          " is an empty answer");
  for (const auto& [key, value] : given.items())
    if (key != role_key && key != text_key && !value.is_null()) message[key] = value;
  return message;
}

Json messages_of(const Json& given, std::string_view key) {
  require(given.is_array() && !given.empty(), "expected a list of messages as ", io::quote(key), ", found ",
          io::shown(given));
  Json messages = Json::array();
  for (const Json& message : given) messages.push_back(message_of(message, messages.size() + 1));
  return messages;
}

Json message(std::string_view role, const Json& text, std::string_view key) {
  require(text.is_string(), "expected a text as ", io::quote(key), ", found ", io::shown(text));
  require(role != "assistant" || !is_blank(text), io::quote(key), " is an empty answer");
  return {{"role", role}, {"content", text}};
}

// A text, or a list of messages.
void append(Json& messages, std::string_view role, const Json& given, std::string_view key) {
  if (!given.is_array()) return messages.push_back(message(role, given, key));
  for (Json& one : messages_of(given, key)) messages.push_back(std::move(one));
}

Json completed(const Json& record) {
  Json messages = Json::array();
  append(messages, "user", record.at("prompt"), "prompt");
  append(messages, "assistant", record.at("completion"), "completion");
  return messages;
}

// As the instruction data of Alpaca: the input, where there is one, is a paragraph of its own.
Json instructed(const Json& record) {
  Json question = message("user", record.at("instruction"), "instruction");
  const Json input = record.value("input", Json());
  if (!input.is_null() && !is_blank(message("user", input, "input").at("content")))
    question["content"] = question["content"].get<std::string>() + "\n\n" + input.get<std::string>();
  return Json::array({question, message("assistant", record.at("output"), "output")});
}

std::string names_of(const Json& record) {
  constexpr std::size_t kMost = 6;
  std::string names;
  std::size_t count = 0;
  for (const auto& [key, unused] : record.items())
    if (count++ < kMost) names += base::join(names.empty() ? "" : ", ", io::quote(key));
  return names.empty() ? "none" : names;
}

Json messages_of_record(const Json& record, std::string_view field) {
  const auto has = [&](std::string_view key) { return record.contains(key) && !record.at(key).is_null(); };
  if (field != "text") {
    require(has(field), "expected a conversation as ", io::quote(field), ", found the keys ",
            names_of(record));
    return messages_of(record.at(field), field);
  }
  for (const char* key : {"messages", "conversations"})
    if (has(key)) return messages_of(record.at(key), key);
  if (has("prompt") && has("completion")) return completed(record);
  if (has("instruction") && has("output")) return instructed(record);
  refuse(base::join(
      "expected a conversation as \"messages\" or \"conversations\", as \"prompt\" and "
      "\"completion\", or as \"instruction\" and \"output\", found the keys ",
      names_of(record), record.contains("text") ? "; a source of plain text has no chat: true" : ""));
}

// Some files have them as JSON within a text.
Json tools_of(const Json& record) {
  const auto found = record.find("tools");
  if (found == record.end() || found->is_null()) return {};
  Json tools = *found;
  if (tools.is_string()) {
    if (is_blank(tools)) return {};
    tools = base::parse_json(tools.get_ref<const std::string&>());
  }
  bool ok = tools.is_array();
  if (ok)
    for (const Json& tool : tools) ok &= tool.is_object();
  require(ok, "expected a list of objects as \"tools\", found ", io::shown(*found));
  return tools.empty() ? Json() : tools;
}

Json parsed(std::string_view text) {
  return base::parse_json(text, {.max_bytes = std::numeric_limits<std::size_t>::max()});
}

}  // namespace

std::string conversation_text(const Json& record, std::string_view field) {
  require(record.is_object(), "expected an object with a conversation, found ", io::shown(record));
  Json conversation = {{"messages", messages_of_record(record, field)}};
  if (Json tools = tools_of(record); !tools.is_null()) conversation["tools"] = std::move(tools);
  return conversation.dump();
}

chat::Conversation conversation_of(std::string_view text) {
  Json json = parsed(text);
  chat::Conversation conversation;
  conversation.messages = std::move(json.at("messages"));
  if (json.contains("tools")) conversation.tools = std::move(json.at("tools"));
  return conversation;
}

std::string spoken_text(std::string_view text) {
  std::string spoken;
  const auto add = [&](const Json& piece) {
    if (piece.is_string()) spoken += piece.get_ref<const std::string&>() + "\n";
  };
  for (const Json& message : conversation_of(text).messages) {
    const Json& content = message.at("content");
    if (!content.is_array())
      add(content);
    else
      for (const Json& part : content) add(part.value("text", Json()));
  }
  return spoken;
}

}  // namespace retort::data
