#pragma once
// Where a model keeps its chat templates, and the tokens that they name.

#include <string>
#include <utility>
#include <vector>

#include "retort/base/files.h"
#include "retort/chat/chat_template.h"

namespace retort::chat {

/// The templates of a model by name: `default`, and others such as `tool_use`.
struct TemplateSources {
  std::vector<std::pair<std::string, std::string>> named;
  std::string where;            ///< the file that has them, or the model, for errors
  TemplateVariables variables;  ///< special tokens: bos_token, eos_token and so on
};

/// Of a model directory or a GGUF file.  As in transformers, chat_template.jinja and the files of
/// additional_chat_templates come before `chat_template` of tokenizer_config.json, a text or a list of named
/// ones; then comes chat_template.json.  Nothing where there is none.  Throws ModelError or StorageError.
TemplateSources find_templates(const base::Path& model);

/// The template that transformers takes: `tool_use` where there are tools, else `default`; or the one that is
/// named.  Throws ModelError where there is none, with the names that there are.
ChatTemplate choose_template(const TemplateSources& sources, bool with_tools, const std::string& name = "");

}  // namespace retort::chat
