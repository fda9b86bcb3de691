#include "retort/chat/template_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/chat/code_points.h"
#include "retort/chat/python_text.h"
#include "retort/chat/template_loop.h"
#include "retort/chat/template_methods.h"
#include "retort/chat/template_names.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

using Whole = std::int64_t;

[[noreturn]] void refuse(std::string_view sign, const Value& a, const Value& b) {
  for (const Value* one : {&a, &b})
    if (const auto* undefined = one->as<Undefined>(); undefined != nullptr && undefined->why)
      throw TemplateFault{*undefined->why};
  throw TemplateFault{"it computes " + type_name(a) + " " + std::string(sign) + " " + type_name(b) +
                      ", which Python refuses"};
}

[[noreturn]] void too_large() {
  throw TemplateFault{"a whole number has more than 64 bits, which Retort lacks"};
}

void require_divisor(bool ok) {
  if (!ok) throw TemplateFault{"it divides by zero"};
}

Whole floor_divided(Whole a, Whole b) {
  require_divisor(b != 0);
  if (b == -1 && a == std::numeric_limits<Whole>::min()) too_large();
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Whole power(Whole base, Whole exponent) {
  Whole result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return result;
}

Value of_wholes(std::string_view sign, Whole a, Whole b) {
  Whole result = 0;
  if (sign == "+") {
    if (__builtin_add_overflow(a, b, &result)) too_large();
  } else if (sign == "-") {
    if (__builtin_sub_overflow(a, b, &result)) too_large();
  } else if (sign == "*") {
    if (__builtin_mul_overflow(a, b, &result)) too_large();
  } else if (sign == "//") {
    result = floor_divided(a, b);
  } else if (sign == "%") {
    require_divisor(b != 0);
    result = b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
  } else if (sign == "**" && b >= 0) {
    result = power(a, b);
  } else {
    constexpr Whole kExact = Whole{1} << 53;
    if (std::max(a, b) > kExact || std::min(a, b) < -kExact) too_large();  // Python rounds once
    require_divisor(sign == "**" ? a != 0 : b != 0);
    return sign == "**" ? std::pow(static_cast<double>(a), static_cast<double>(b))
                        : static_cast<double>(a) / static_cast<double>(b);
  }
  return result;
}

Value of_reals(std::string_view sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "**")
    throw TemplateFault{"it computes a power of numbers that are not whole, which Retort lacks"};
  require_divisor(b != 0);
  if (sign == "/") return a / b;
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  } else if (rest == 0) {
    rest = std::copysign(0.0, b);
  }
  if (sign == "%") return rest;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

// What is added to text that is marked safe is escaped.
Value joined(const Value& a, const Value& b, Budget& budget) {
  const bool safe = a.is_safe() || b.is_safe();
  budget.make(a.text()->size() + b.text()->size());
  const auto part = [&](const Value& one) {
    return safe && !one.is_safe() ? escaped(*one.text()) : *one.text();
  };
  return make_text(part(a) + part(b), budget, safe);
}

std::size_t times(const Value& count) {
  return static_cast<std::size_t>(std::clamp<Whole>(*count.whole(), 0, Whole{1} << 40));
}

Value repeated(const Value& value, const Value& count, Budget& budget) {
  const std::size_t n = times(count);
  if (const auto* text = value.text()) {
    budget.make(n * std::min<std::size_t>(text->size(), std::size_t{1} << 20));
    std::string out;
    if (!text->empty())
      for (std::size_t i = 0; i < n; ++i) out += *text;
    return make_text(std::move(out), budget, value.is_safe());
  }
  const auto& items = value.sequence()->items;
  budget.make(n * std::min<std::size_t>(items.size() * sizeof(Value), std::size_t{1} << 20));
  Values out;
  if (!items.empty())
    for (std::size_t i = 0; i < n; ++i) out.insert(out.end(), items.begin(), items.end());
  return make_sequence(value.sequence()->kind, std::move(out), budget);
}

bool is_list_or_tuple(const Value& value) {
  const auto* sequence = value.sequence();
  return sequence != nullptr &&
         (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple);
}

Value method_or_undefined(const Value& value, std::string_view name, bool has, bool changes) {
  if (has && !changes) return method_of(value, name);
  return Value::undefined(changes ? "the method " + io::quote(name) + " would change a " + type_name(value) +
                                        ", which the sandbox refuses"
                                  : "a " + type_name(value) + " has no attribute " + io::quote(name));
}

// Whether an attribute of Python is there that Retort lacks.
bool is_lacking(const Value& value, std::string_view name) {
  if (value.number()) return python_has_number_attribute(name);
  if (value.as<std::shared_ptr<const Callable>>() != nullptr) return true;
  const auto* sequence = value.sequence();
  if (sequence == nullptr) return false;
  switch (sequence->kind) {
    case SequenceKind::range:
      return name == "start" || name == "stop" || name == "step" || python_has_tuple_method(name);
    case SequenceKind::keys:
    case SequenceKind::values:
    case SequenceKind::items:
      return name == "mapping" || name == "isdisjoint";
    case SequenceKind::generator:
      return name == "send" || name == "throw" || name == "close";
    default:
      return false;
  }
}

// Attributes without the items of a map.
Value own_attribute(const Value& value, std::string_view name) {
  if (const auto* undefined = value.as<Undefined>())
    throw TemplateFault{undefined->why ? *undefined->why
                                       : "it takes " + io::quote(name) + " of an undefined value"};
  if (is_lacking(value, name))
    throw TemplateFault{"it uses the attribute " + io::quote(name) + " of a " + type_name(value) +
                        ", which Retort lacks"};
  if (value.text() != nullptr) return method_or_undefined(value, name, python_has_text_method(name), false);
  if (value.map() != nullptr)
    return method_or_undefined(value, name, python_has_map_method(name), changes_map(name));
  if (is_list_or_tuple(value)) {
    const bool list = value.sequence()->kind == SequenceKind::list;
    return method_or_undefined(value, name,
                               list ? python_has_list_method(name) : python_has_tuple_method(name),
                               list && changes_list(name));
  }
  if (const auto* space = value.as<std::shared_ptr<Namespace>>()) {
    const auto found = (*space)->attributes.find(std::string(name));
    if (found != (*space)->attributes.end()) return found->second;
  }
  if (const auto* loop = value.as<std::shared_ptr<LoopState>>()) return loop_attribute(*loop, name);
  return method_or_undefined(value, name, false, false);
}

Whole bound(const Value* given, Whole otherwise) {
  if (given == nullptr || given->is_none()) return otherwise;
  if (const auto whole = given->whole()) return *whole;
  throw TemplateFault{"it cuts at " + type_name(*given) + "; cut at whole numbers"};
}

// Python's slice.indices.
std::vector<std::size_t> indices(Whole size, const Value* start, const Value* stop, Whole step,
                                 Budget& budget) {
  const Whole lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto place = [&](const Value* given, Whole otherwise) {
    const Whole at = bound(given, otherwise);
    const bool is_given = given != nullptr && !given->is_none();
    return is_given ? std::clamp(at < 0 ? at + size : at, lowest, highest) : otherwise;
  };
  const Whole first = place(start, step > 0 ? lowest : highest),
              last = place(stop, step > 0 ? highest : lowest);
  std::vector<std::size_t> chosen;
  const Whole stride = std::clamp(step, -(size + 1), size + 1);
  for (Whole i = first; step > 0 ? i < last : i > last; i += stride)
    chosen.push_back(static_cast<std::size_t>(i));
  budget.step(std::ssize(chosen));
  budget.make(chosen.size() * sizeof(std::size_t));
  return chosen;
}

Value text_slice(const Value& value, const Value* start, const Value* stop, Whole step, Budget& budget) {
  const std::string& text = *value.text();
  const auto size = static_cast<Whole>(characters_in(text));
  const auto chosen = indices(size, start, stop, step, budget);
  if (chosen.empty()) return make_text("", budget, value.is_safe());
  if (step == 1)
    return make_text(std::string(character_range(text, chosen.front(), chosen.back() + 1)), budget,
                     value.is_safe());
  std::vector<std::string_view> characters;
  budget.make(text.size() * sizeof(std::string_view));
  for_each_character(text, [&](std::string_view one) { characters.push_back(one); });
  std::string out;
  for (const auto i : chosen) out += characters[i];
  return make_text(std::move(out), budget, value.is_safe());
}

Value element(const Value& value, Whole index, Budget& budget) {
  const Whole size = length_of(value);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return Value::undefined("a " + type_name(value) + " has no such element");
  const auto at = static_cast<std::size_t>(index);
  if (value.text() == nullptr) return value.sequence()->items[at];
  budget.step(1 + size / 64);
  return {std::string(character_range(*value.text(), at, at + 1)), value.is_safe()};
}

bool is_hashable(const Value& value) {
  if (value.map() != nullptr) return false;
  const auto* sequence = value.sequence();
  if (sequence == nullptr) return true;
  return sequence->kind == SequenceKind::tuple &&
         std::all_of(sequence->items.begin(), sequence->items.end(), is_hashable);
}

}  // namespace

Value arithmetic(std::string_view sign, const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.whole() && b.whole()) return of_wholes(sign, *a.whole(), *b.whole());
  if (a.number() && b.number()) return of_reals(sign, *a.number(), *b.number());
  if (sign == "+" && a.text() != nullptr && b.text() != nullptr) return joined(a, b, budget);
  if (sign == "+" && is_list_or_tuple(a) && is_list_or_tuple(b) && a.sequence()->kind == b.sequence()->kind) {
    budget.make(a.sequence()->items.size() * sizeof(Value));
    auto items = a.sequence()->items;
    items.insert(items.end(), b.sequence()->items.begin(), b.sequence()->items.end());
    return make_sequence(a.sequence()->kind, std::move(items), budget);
  }
  if (sign == "*" && b.whole() && (a.text() != nullptr || is_list_or_tuple(a))) return repeated(a, b, budget);
  if (sign == "*" && a.whole() && (b.text() != nullptr || is_list_or_tuple(b))) return repeated(b, a, budget);
  if (sign == "%" && a.text() != nullptr)
    throw TemplateFault{"it formats a text by \"%\", which Retort lacks"};
  refuse(sign, a, b);
}

Value negative(const Value& value) {
  if (const auto whole = value.whole()) {
    if (*whole == std::numeric_limits<Whole>::min()) too_large();
    return -*whole;
  }
  if (const auto real = value.number()) return -*real;
  refuse("-", value, value);
}

bool compare(std::string_view sign, const Value& a, const Value& b, Budget& budget) {
  if (sign == "==") return equal(a, b, budget);
  if (sign == "!=") return !equal(a, b, budget);
  if (sign == "in") return contains(b, a, budget);
  if (sign == "not in") return !contains(b, a, budget);
  if (a.is_undefined() || b.is_undefined()) refuse(sign, a, b);
  if (sign == "<") return less(a, b, budget);
  if (sign == ">") return less(b, a, budget);
  if (equal(a, b, budget) && (a.number() || a.text() != nullptr || a.sequence() != nullptr)) return true;
  return sign == "<=" ? less(a, b, budget) : less(b, a, budget);
}

Value attribute_of(const Value& value, std::string_view name, Budget& budget) {
  budget.step();
  if (const Map* map = value.map(); map != nullptr && !python_has_map_method(name))
    if (const Value* item = map->find(name)) return *item;
  return own_attribute(value, name);
}

Value item_of(const Value& value, const Value& key, Budget& budget) {
  budget.step();
  if (value.is_undefined()) return own_attribute(value, "[]");
  const auto* sequence = value.sequence();
  const bool has_elements = value.text() != nullptr || is_list_or_tuple(value) ||
                            (sequence != nullptr && sequence->kind == SequenceKind::range);
  if (has_elements && key.whole()) return element(value, *key.whole(), budget);
  if (const auto* map = value.map(); map != nullptr && is_hashable(key))
    if (const Value* item = map->find(key)) return *item;
  const auto* name = key.text();
  if (name != nullptr && !name->starts_with('_')) return own_attribute(value, *name);
  return Value::undefined("a " + type_name(value) + " has no such element");
}

Value slice_of(const Value& value, const Value* start, const Value* stop, const Value* step, Budget& budget) {
  const Whole stride = bound(step, 1);
  if (stride == 0) throw TemplateFault{"it cuts in steps of zero"};
  if (value.text() != nullptr) return text_slice(value, start, stop, stride, budget);
  if (!is_list_or_tuple(value)) {
    if (value.is_undefined()) return own_attribute(value, "[:]");
    throw TemplateFault{"it cuts a part out of " + type_name(value) + ", which Retort lacks"};
  }
  const auto& items = value.sequence()->items;
  Values out;
  for (const auto i : indices(std::ssize(items), start, stop, stride, budget)) out.push_back(items[i]);
  return make_sequence(value.sequence()->kind, std::move(out), budget);
}

}  // namespace retort::chat
