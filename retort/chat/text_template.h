#pragma once
// A template of plain text, such as the prompts of evaluation tasks: Jinja as its own environment has it with
// StrictUndefined and keep_trailing_newline, and with a filter regex_replace.  White space around tags stays,
// and what is undefined is an error.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "retort/base/json.h"

namespace retort::chat {

/// Immutable and cheap to copy; all functions may be called from several threads at once.
class TextTemplate {
 public:
  /// Reads a template.  `where` names it in errors.  Throws UsageError for what is no template, or has a
  /// construct that Retort lacks, with its line.
  static TextTemplate parse(std::string_view source, std::string where);

  /// The text, with the keys of an object as names.  Throws DataError, which begins with `what`, where a name
  /// is undefined, the template does what Retort lacks, or exceeds a limit.
  std::string render(const base::Json& variables, std::string_view what) const;

 private:
  struct State;
  explicit TextTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace retort::chat
