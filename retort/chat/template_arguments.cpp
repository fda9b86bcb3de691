#include "retort/chat/template_arguments.h"

#include <algorithm>

#include "retort/io/quote.h"

namespace retort::chat {

Parameters::Parameters(std::string_view who, const Arguments& arguments,
                       std::initializer_list<std::string_view> names)
    : who_(who), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size())
    throw TemplateFault{who_ + " takes at most " + std::to_string(names.size()) + " arguments, found " +
                        std::to_string(arguments.positional.size())};
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    if (at == names_.size() || values_[at] != nullptr)
      throw TemplateFault{who_ + " takes no further argument " + io::quote(name)};
    values_[at] = &value;
  }
}

const Value& Parameters::at(std::size_t index) const {
  if (!has(index))
    throw TemplateFault{who_ + " takes an argument " + io::quote(names_[index]) + ", found none"};
  return *values_[index];
}

const std::string& Parameters::text(std::size_t index) const {
  const auto* text = at(index).text();
  if (text == nullptr)
    throw TemplateFault{who_ + " takes a text for " + io::quote(names_[index]) + ", found " +
                        type_name(at(index))};
  return *text;
}

const std::string* Parameters::text_or_null(std::size_t index) const {
  return has(index) && !at(index).is_none() ? &text(index) : nullptr;
}

std::int64_t Parameters::whole(std::size_t index, std::int64_t otherwise) const {
  if (!has(index)) return otherwise;
  const auto number = at(index).whole();
  if (!number)
    throw TemplateFault{who_ + " takes a whole number for " + io::quote(names_[index]) + ", found " +
                        type_name(at(index))};
  return *number;
}

}  // namespace retort::chat
