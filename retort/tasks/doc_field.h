#pragma once
// What a task takes from each document: doc_to_text and its kin.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/chat/text_template.h"

namespace retort::tasks {

/// A document, and where it is for errors: "arc_easy: document 7".
struct DocView {
  const base::Json& doc;                     ///< an object; its keys keep their order
  const std::vector<std::string>& features;  ///< columns of the data
  std::string where;
};

/// A column's name, a template, a whole number, a list of texts, or a map of texts; or not given.  Immutable
/// and cheap to copy.
class DocField {
 public:
  DocField() = default;
  /// `written`: text, whole number, list, object or null.  `name` and `where` (file and line) are for errors.
  /// A text's template is read only where it is needed, since it may be a column's name.
  DocField(base::Json written, std::string name, std::string where);

  bool is_given() const { return !written_.is_null(); }
  const base::Json& written() const { return written_; }
  const std::string& name() const { return name_; }

  /// The value of the column of this name, or the template's text; null where the field is not given.  Throws
  /// DataError, with document and field, for a name that the data lack, and for a template that fails;
  /// UsageError for what is no template.
  base::Json column_or_text(const DocView& doc) const;
  /// As doc_to_text of lm-eval: a text of digits is a number where the task has choices.
  base::Json as_text(const DocView& doc, bool has_choices) const;
  /// As doc_to_target of lm-eval: a text in brackets is a list where Python reads it as one, too.
  base::Json as_target(const DocView& doc, bool has_choices) const;
  /// As doc_to_choice of lm-eval.  Throws DataError for what is no list of texts, or has none, or has an
  /// empty one.
  std::vector<std::string> as_choices(const DocView& doc) const;
  /// As Task.resolve_field of lm-eval: a key of this very document, else the template's text; empty where not
  /// given.
  std::string as_prefix(const DocView& doc) const;

 private:
  struct Compiled;
  std::string rendered(const DocView& doc) const;

  base::Json written_;
  std::string name_, where_;
  std::shared_ptr<Compiled> compiled_;
};

}  // namespace retort::tasks
