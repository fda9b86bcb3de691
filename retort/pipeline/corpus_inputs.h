#pragma once
// Files of what a model is to go on with: questions, and beginnings of documents.

#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/chat/conversation.h"

namespace retort::pipeline {

/// A question a line: text, or JSON {"prompt": TEXT} or {"messages": [...]}.  A conversation that ends with
/// an answer loses it, since the model is to write its own.  Throws DataError, with the line, and
/// StorageError.
std::vector<chat::Conversation> read_questions(const base::Path& path);

/// A beginning a line: text, or JSON {"text": TEXT} or {"prompt": TEXT}.  Throws as read_questions.
std::vector<std::string> read_starts(const base::Path& path);

}  // namespace retort::pipeline
