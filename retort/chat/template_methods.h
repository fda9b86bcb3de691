#pragma once
// Methods of texts, lists, tuples and maps.

#include <string_view>

#include "retort/chat/template_value.h"

namespace retort::chat {

/// value.name as a function, which throws TemplateFault where Retort lacks the method.
Value method_of(const Value& value, std::string_view name);
/// Calls it.
Value call_method(const Value& value, std::string_view name, const Arguments& arguments, Budget& budget);

}  // namespace retort::chat
