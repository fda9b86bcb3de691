#pragma once
// Filters and tests of a template, as Jinja has them; tojson as transformers has it.  They throw
// TemplateFault.

#include <string_view>

#include "retort/chat/template_value.h"

namespace retort::chat {

/// value | name(arguments)
Value filtered(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget);
/// tojson of Jinja itself: sorted, in ASCII, and with the signs of HTML escaped.
Value json_for_html(const Value& value, const Arguments& arguments, Budget& budget);
/// regex_replace(pattern, repl, count=0): re.sub of Python.
Value replaced_by_regex(const Value& value, const Arguments& arguments, Budget& budget);

/// value is name(arguments)
bool passes(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget);

/// Filters of lists, which filtered() asks where it has no other; nothing where there is none of the name.
std::optional<Value> filtered_sequence(std::string_view name, const Value& value, const Arguments& arguments,
                                       Budget& budget);

}  // namespace retort::chat
