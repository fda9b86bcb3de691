#include <string>

#include "retort/chat/code_points.h"
#include "retort/chat/python_text.h"
#include "retort/chat/template_arguments.h"
#include "retort/chat/template_filters.h"
#include "retort/chat/template_methods.h"
#include "retort/chat/template_operators.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

// The operator that a test stands for; empty: none.
std::string_view operator_of(std::string_view name) {
  if (name == "==" || name == "eq" || name == "equalto") return "==";
  if (name == "!=" || name == "ne") return "!=";
  if (name == ">" || name == "gt" || name == "greaterthan") return ">";
  if (name == ">=" || name == "ge") return ">=";
  if (name == "<" || name == "lt" || name == "lessthan") return "<";
  if (name == "<=" || name == "le") return "<=";
  return name == "in" ? "in" : "";
}

bool is_sequence(const Value& value) {
  if (value.text() != nullptr || value.map() != nullptr || value.is_undefined()) return true;
  const auto* sequence = value.sequence();
  return sequence != nullptr &&
         (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple ||
          sequence->kind == SequenceKind::range);
}

bool is_iterable(const Value& value) {
  return value.text() != nullptr || value.map() != nullptr || value.is_undefined() ||
         value.sequence() != nullptr || value.as<std::shared_ptr<LoopState>>() != nullptr;
}

bool is_callable(const Value& value) {
  return value.as<std::shared_ptr<const Callable>>() != nullptr || value.is_undefined() ||
         value.as<std::shared_ptr<LoopState>>() != nullptr;
}

bool is_same(const Value& a, const Value& b) {
  const bool known = a.is_none() || b.is_none() || a.as<bool>() != nullptr || b.as<bool>() != nullptr;
  if (!known)
    throw TemplateFault{"it asks whether two values are the same object, which Retort lacks; use =="};
  if (a.data().index() != b.data().index()) return false;
  return a.is_none() || *a.as<bool>() == *b.as<bool>();
}

bool remainder_is(const Value& value, std::int64_t by, std::int64_t rest, Budget& budget) {
  return equal(arithmetic("%", value, by, budget), rest, budget);
}

// Tests without arguments.
bool has_property(std::string_view name, const Value& value, Budget& budget) {
  const auto* truth = value.as<bool>();
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "boolean") return truth != nullptr;
  if (name == "true") return truth != nullptr && *truth;
  if (name == "false") return truth != nullptr && !*truth;
  if (name == "integer") return value.as<std::int64_t>() != nullptr;
  if (name == "float") return value.as<double>() != nullptr;
  if (name == "number") return value.number().has_value();
  if (name == "string") return value.text() != nullptr;
  if (name == "mapping") return value.map() != nullptr;
  if (name == "sequence") return is_sequence(value);
  if (name == "iterable") return is_iterable(value);
  if (name == "callable") return is_callable(value);
  if (name == "escaped") return value.is_safe();
  if (name == "odd") return remainder_is(value, 2, 1, budget);
  if (name == "even") return remainder_is(value, 2, 0, budget);
  if (name == "lower" || name == "upper")
    return is_true(call_method(to_text(value, budget), "is" + std::string(name), {}, budget));
  throw TemplateFault{"there is no test " + io::quote(name)};
}

}  // namespace

bool passes(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget) {
  budget.step();
  const std::string who = "the test " + io::quote(name);
  if (const auto sign = operator_of(name); !sign.empty())
    return compare(sign, value, Parameters(who, arguments, {"other"}).at(0), budget);
  if (name == "divisibleby")
    return equal(arithmetic("%", value, Parameters(who, arguments, {"num"}).at(0), budget), std::int64_t{0},
                 budget);
  if (name == "sameas") return is_same(value, Parameters(who, arguments, {"other"}).at(0));
  const Parameters none(who, arguments, {});
  return has_property(name, value, budget);
}

}  // namespace retort::chat
