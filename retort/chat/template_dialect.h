#pragma once
// Whose Jinja a template is written for.

namespace retort::chat {

enum class Dialect {
  transformers,  ///< of chat templates: trim_blocks and lstrip_blocks; what is undefined is empty text
  plain,         ///< Jinja's own, with StrictUndefined, keep_trailing_newline and the filter regex_replace
};

}  // namespace retort::chat
