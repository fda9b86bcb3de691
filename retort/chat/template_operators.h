#pragma once
// Operators of a template on values, as Python and Jinja's sandbox have them.  All throw TemplateFault for
// values that an operator does not take.

#include <string_view>

#include "retort/chat/template_value.h"

namespace retort::chat {

/// + - * / // % **
Value arithmetic(std::string_view sign, const Value& a, const Value& b, Budget& budget);
Value negative(const Value& value);
/// == != < <= > >= in, and not in
bool compare(std::string_view sign, const Value& a, const Value& b, Budget& budget);

/// value.name: a method or an attribute before an item.  Undefined where there is neither.
Value attribute_of(const Value& value, std::string_view name, Budget& budget);
/// value[key]: an item before an attribute.
Value item_of(const Value& value, const Value& key, Budget& budget);
/// value[start:stop:step]; null means not given.
Value slice_of(const Value& value, const Value* start, const Value* stop, const Value* step, Budget& budget);

}  // namespace retort::chat
