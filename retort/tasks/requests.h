#pragma once
// What a model is asked for each document: contexts with continuations, texts, or contexts to go on with.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/chat/chat_template.h"
#include "retort/tasks/documents.h"
#include "retort/tasks/task.h"

namespace retort::tasks {

enum class RequestKind {
  loglikelihood,          ///< of the continuation after the context
  loglikelihood_rolling,  ///< of all of the continuation; there is no context
  generate_until          ///< of the context
};

struct Request {
  RequestKind kind = RequestKind::loglikelihood;
  std::string context, continuation;
};

/// Where the right answers are among the choices.
struct Gold {
  std::vector<std::int64_t> indices;  ///< of multiple_choice: one, or several of which each is right
  bool several = false;               ///< whether the document gave a list
  std::vector<std::string> texts;     ///< of generate_until: one, or several of which each is right
};

struct PreparedDocument {
  std::int64_t id = 0;  ///< in the split, from 0
  std::vector<Request> requests;
  std::vector<std::string> choices;  ///< without delimiters; empty where the task has none
  Gold gold;
  base::Json target;                  ///< as lm-eval logs it
  std::int64_t words = 0, bytes = 0;  ///< of the text of loglikelihood_rolling
};

/// Writes messages, a list of {"role", "content"}, as a model wants them.  Without a generation prompt the
/// last message is gone on with.
using ChatWriter = std::function<std::string(const base::Json& messages, bool add_generation_prompt)>;

/// Writes by a model's template.  One that refuses the messages is given them again without those of the
/// system, as in lm-eval.
ChatWriter chat_writer(chat::ChatTemplate chat_template);

struct PromptOptions {
  std::optional<std::int64_t> limit;  ///< of documents, the first ones
  std::optional<std::string> system_instruction;
  ChatWriter chat;  ///< empty: plain text
  bool fewshot_as_multiturn = false;
};

struct PreparedTask {
  Task task;
  std::vector<base::Json> rows;  ///< the documents that are asked about, in order
  std::vector<PreparedDocument> documents;
  std::int64_t documents_in_split = 0;
  bool several_contexts = false;  ///< the choices are contexts, and all have one continuation
};

/// Makes all requests of a task, with examples as CPython's Random(1234) draws them.  Throws DataError for a
/// document that lacks a field, has a gold outside its choices or an empty choice, and for fewer examples
/// than are asked for, with the task and the document's number.
PreparedTask prepare(Task task, TaskDocuments documents, const PromptOptions& options = {});

}  // namespace retort::tasks
