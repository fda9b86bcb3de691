#pragma once
// A conversation: messages with their roles, and the tools and documents that they may use.

#include <string>
#include <string_view>

#include "retort/base/json.h"

namespace retort::chat {

struct Conversation {
  /// A list of objects with `role`, and `content` as text or as a list of parts.  Other keys, such as
  /// `tool_calls` and `reasoning_content`, are there for the template.
  base::Json messages = base::Json::array();
  base::Json tools;      ///< a list of JSON schemas, or null
  base::Json documents;  ///< a list of objects, or null

  void add(std::string_view role, std::string_view content);
  bool empty() const { return messages.empty(); }
};

/// Reads {"messages": [...], "tools": [...], "documents": [...]} or the list of messages alone.  `where`
/// names it in errors.  Throws DataError for what is no conversation, with the number of the message, from 1.
Conversation read_conversation(const base::Json& json, std::string_view where);

}  // namespace retort::chat
