#include "retort/chat/conversation.h"

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

using base::DataError;
using base::Json;
using base::require;

void check_message(const Json& message, std::size_t number, std::string_view where) {
  require<DataError>(message.is_object(), where, ": message ", number, " is ", io::shown(message),
                     ", expected an object with \"role\" and \"content\".");
  const auto role = message.find("role");
  require<DataError>(role != message.end() && role->is_string(), where, ": message ", number,
                     " has no text \"role\"; give it one, for example \"user\".");
  const auto content = message.find("content");
  const bool ok =
      content == message.end() || content->is_null() || content->is_string() || content->is_array();
  require<DataError>(ok, where, ": message ", number, " has the content ",
                     ok ? std::string() : io::shown(*content), ", expected a text or a list of parts.");
}

// A list of objects, or null where it is not there.
Json list_of(const Json& json, const char* key, std::string_view where) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  bool ok = found->is_array();
  if (ok)
    for (const Json& item : *found) ok &= item.is_object();
  require<DataError>(ok, where, ": ", io::quote(key), " is no list of objects; write one, or leave it out.");
  return *found;
}

}  // namespace

void Conversation::add(std::string_view role, std::string_view content) {
  messages.push_back({{"role", role}, {"content", content}});
}

Conversation read_conversation(const Json& json, std::string_view where) {
  Conversation conversation;
  const bool is_list = json.is_array();
  require<DataError>(is_list || (json.is_object() && json.contains("messages")), where,
                     ": expected a conversation, an object with a list \"messages\", found ", io::shown(json),
                     ".");
  conversation.messages = is_list ? json : json.at("messages");
  require<DataError>(conversation.messages.is_array() && !conversation.messages.empty(), where,
                     ": \"messages\" has no message; a conversation has at least one.");
  for (std::size_t i = 0; i < conversation.messages.size(); ++i)
    check_message(conversation.messages[i], i + 1, where);
  if (is_list) return conversation;
  conversation.tools = list_of(json, "tools", where);
  conversation.documents = list_of(json, "documents", where);
  return conversation;
}

}  // namespace retort::chat
