#pragma once
// What filters, tests, methods and functions Jinja and Python have, and which of them Retort has.

#include <string_view>

#include "retort/chat/template_dialect.h"

namespace retort::chat {

bool has_filter(std::string_view name, Dialect dialect);
bool jinja_has_filter(std::string_view name);
bool has_test(std::string_view name);
bool jinja_has_test(std::string_view name);
/// Methods of texts, lists, tuples or maps that Retort has, or that the sandbox refuses.
bool has_method(std::string_view name);
/// Those of Python.
bool python_has_text_method(std::string_view name);
bool python_has_map_method(std::string_view name);
bool python_has_list_method(std::string_view name);
bool python_has_tuple_method(std::string_view name);
bool python_has_number_attribute(std::string_view name);
/// Methods that would change a list or a map.
bool changes_list(std::string_view name);
bool changes_map(std::string_view name);

}  // namespace retort::chat
