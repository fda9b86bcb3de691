#pragma once
// Reads a template into its syntax tree.

#include <string_view>

#include "retort/chat/template_syntax.h"

namespace retort::chat {

/// `source` is valid UTF-8.  Throws TemplateFault for what is no template, or has a construct that Retort
/// lacks.
Syntax parse_template(std::string_view source, Dialect dialect = Dialect::transformers);

}  // namespace retort::chat
