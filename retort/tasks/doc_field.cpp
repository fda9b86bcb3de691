#include "retort/tasks/doc_field.h"

#include <algorithm>
#include <mutex>

#include "retort/base/error.h"
#include "retort/io/quote.h"
#include "retort/tasks/python_literal.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;
using base::require;

bool is_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

// Read where it is first needed: a text may be a column's name, which is no template.
struct DocField::Compiled {
  std::once_flag once;
  std::optional<chat::TextTemplate> text_template;
};

DocField::DocField(Json written, std::string name, std::string where)
    : written_(std::move(written)),
      name_(std::move(name)),
      where_(std::move(where)),
      compiled_(std::make_shared<Compiled>()) {}

std::string DocField::rendered(const DocView& doc) const {
  std::call_once(compiled_->once, [&] {
    compiled_->text_template =
        chat::TextTemplate::parse(written_.get_ref<const std::string&>(), where_ + ": " + name_);
  });
  return compiled_->text_template->render(doc.doc, doc.where + ": " + name_);
}

Json DocField::column_or_text(const DocView& doc) const {
  if (!written_.is_string()) return written_;
  const auto& text = written_.get_ref<const std::string&>();
  const bool is_column = std::find(doc.features.begin(), doc.features.end(), text) != doc.features.end();
  if (!is_column) return rendered(doc);
  const auto found = doc.doc.find(text);
  require<DataError>(found != doc.doc.end(), doc.where, ": ", name_, ": the document has no field ",
                     io::quote(text), "; give it one.");
  return *found;
}

Json DocField::as_text(const DocView& doc, bool has_choices) const {
  Json value = column_or_text(doc);
  const bool is_template = written_.is_string() && value.is_string();
  if (!is_template || !has_choices || !is_digits(value.get_ref<const std::string&>())) return value;
  const auto& text = written_.get_ref<const std::string&>();
  if (std::find(doc.features.begin(), doc.features.end(), text) != doc.features.end()) return value;
  try {
    return python_literal(value.get_ref<const std::string&>());
  } catch (const LiteralFault& fault) {
    throw DataError(base::join(doc.where, ": ", name_, ": ", io::shown(value),
                               " is no number of Python: ", fault.reason, "."));
  }
}

Json DocField::as_target(const DocView& doc, bool has_choices) const {
  Json value = as_text(doc, has_choices);
  if (!written_.is_string() || !value.is_string()) return value;
  const auto& written = written_.get_ref<const std::string&>();
  if (std::find(doc.features.begin(), doc.features.end(), written) != doc.features.end()) return value;
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return value;
  try {
    return python_literal(text);
  } catch (const LiteralFault&) {
    return value;  // as lm-eval, which takes it for a text
  }
}

std::vector<std::string> DocField::as_choices(const DocView& doc) const {
  Json list = column_or_text(doc);
  const auto& written = written_;
  const bool is_column =
      written.is_string() && std::find(doc.features.begin(), doc.features.end(),
                                       written.get_ref<const std::string&>()) != doc.features.end();
  if (written.is_string() && !is_column) {
    try {
      list = python_literal(list.get_ref<const std::string&>());
    } catch (const LiteralFault& fault) {
      throw DataError(base::join(doc.where, ": ", name_, ": the template's text ", io::shown(list),
                                 " is no list of Python: ", fault.reason, "."));
    }
  }
  if (list.is_object()) {
    Json values = Json::array();
    for (const auto& item : list.items()) values.push_back(item.value());
    list = std::move(values);
  }
  require<DataError>(list.is_array() && !list.empty(), doc.where, ": ", name_,
                     ": expected a list of choices, found ", io::shown(list), ".");
  std::vector<std::string> choices;
  for (const Json& choice : list) {
    require<DataError>(choice.is_string(), doc.where, ": ", name_, ": choice ", choices.size(), " is ",
                       io::shown(choice), ", expected a text; quote it.");
    choices.push_back(choice.get<std::string>());
    require<DataError>(!choices.back().empty(), doc.where, ": ", name_, ": choice ", choices.size() - 1,
                       " is empty, so no score can be divided by its length; leave it out.");
  }
  return choices;
}

std::string DocField::as_prefix(const DocView& doc) const {
  if (!written_.is_string() || written_.get_ref<const std::string&>().empty()) return {};
  const auto& text = written_.get_ref<const std::string&>();
  const auto found = doc.doc.find(text);
  if (found == doc.doc.end()) return rendered(doc);
  require<DataError>(found->is_string(), doc.where, ": ", name_, ": the field ", io::quote(text), " is ",
                     io::shown(*found), ", expected a text.");
  return found->get<std::string>();
}

}  // namespace retort::tasks
