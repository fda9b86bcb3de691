#pragma once
// The arguments of a filter, a test or a method by the names of its parameters.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "retort/chat/template_value.h"

namespace retort::chat {

class Parameters {
 public:
  /// Throws TemplateFault for an argument too many or of another name.
  Parameters(std::string_view who, const Arguments& arguments, std::initializer_list<std::string_view> names);

  bool has(std::size_t index) const { return values_[index] != nullptr; }
  /// Throws TemplateFault where it is not given.
  const Value& at(std::size_t index) const;
  const Value& at_or(std::size_t index, const Value& otherwise) const {
    return has(index) ? *values_[index] : otherwise;
  }
  /// Not given is false.
  bool flag(std::size_t index) const { return has(index) && is_true(*values_[index]); }
  /// Throws TemplateFault for what is no text.
  const std::string& text(std::size_t index) const;
  /// Null where it is not given or none.
  const std::string* text_or_null(std::size_t index) const;
  /// Throws TemplateFault for what is no whole number.
  std::int64_t whole(std::size_t index, std::int64_t otherwise) const;

 private:
  std::string who_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace retort::chat
