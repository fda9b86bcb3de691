#pragma once
// What a line of a file of prompts is to a model: the ids that it reads.

#include <cstdint>
#include <optional>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/chat/template_files.h"
#include "retort/pipeline/context.h"

namespace retort::pipeline {

class PromptReader {
 public:
  /// `text` is that of the model, and outlives the reader; `bos`: a begin-of-text token stands before
  /// prompts.
  PromptReader(base::Path model, const ModelText& text, bool bos);

  /// Of a line as read_prompts() gives it; a conversation is written as the model's chat template has it.
  /// Throws as ModelText::prompt_ids and chat::encode_conversation.
  std::vector<std::int32_t> ids_of(const base::Json& line);

 private:
  base::Path model_;
  const ModelText& text_;
  bool bos_;
  std::optional<chat::ChatTemplate> template_;  ///< found when a conversation asks for it
};

}  // namespace retort::pipeline
