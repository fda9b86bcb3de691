#include "retort/chat/template_interpreter.h"

#include <array>

#include "retort/chat/python_text.h"
#include "retort/chat/template_arguments.h"
#include "retort/chat/template_filters.h"
#include "retort/chat/template_operators.h"
#include "retort/chat/template_scope.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

Value function(const char* name, std::function<Value(const Arguments&, Budget&)> call) {
  return std::make_shared<const Callable>(Callable{name, std::move(call)});
}

Value raise_exception(const Arguments& arguments, Budget& budget) {
  const Parameters parameters("raise_exception", arguments, {"message"});
  throw TemplateFault{"it refuses the conversation: " + io::quote(to_text(parameters.at(0), budget))};
}

// As range() of Python, within the sandbox's bound.
Value range(const Arguments& arguments, Budget& budget) {
  if (!arguments.named.empty() || arguments.positional.empty())
    throw TemplateFault{"range takes one to three whole numbers"};
  const Parameters parameters("range", arguments, {"start", "stop", "step"});
  const bool only_stop = !parameters.has(1);
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = SequenceKind::range;
  sequence->start = only_stop ? 0 : parameters.whole(0, 0);
  sequence->stop = parameters.whole(only_stop ? 0 : 1, 0);
  const auto stride = sequence->stride = parameters.whole(2, 1);
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  for (const auto number : {sequence->start, sequence->stop, stride})
    if (number > kFar || number < -kFar)
      throw TemplateFault{"range takes a number beyond 2^60, which Retort lacks"};
  if (stride == 0) throw TemplateFault{"range goes in steps of zero"};
  for (auto i = sequence->start; stride > 0 ? i < sequence->stop : i > sequence->stop; i += stride) {
    if (std::ssize(sequence->items) >= kLongestRange)
      throw TemplateFault{"range has more than 100,000 numbers, which the sandbox refuses"};
    sequence->items.emplace_back(i);
  }
  budget.step(std::ssize(sequence->items));
  budget.make(sequence->items.size() * sizeof(Value));
  return std::shared_ptr<const Sequence>(std::move(sequence));
}

// As dict() of Python, of a map and of names.
Value dict(const Arguments& arguments, Budget& budget) {
  Map map;
  if (arguments.positional.size() > 1) throw TemplateFault{"dict takes at most one map"};
  for (const Value& value : arguments.positional) {
    if (value.map() == nullptr)
      throw TemplateFault{"dict is made of " + type_name(value) + ", which Retort lacks"};
    map = *value.map();
  }
  for (const auto& [name, value] : arguments.named) map.set(name, value);
  return make_map(std::move(map), budget);
}

}  // namespace

Interpreter::Interpreter(const Syntax& syntax, std::vector<std::pair<std::string, Value>> variables,
                         const std::tm& now)
    : syntax_(syntax), now_(now), globals_(syntax.names.size()) {
  for (std::size_t i = 0; i < syntax.names.size(); ++i) {
    globals_[i] = global(syntax.names[i]);
    for (const auto& [name, value] : variables)
      if (name == syntax.names[i]) globals_[i] = value;
  }
  loop_name_ = id_of("loop");
  caller_name_ = id_of("caller");
  varargs_name_ = id_of("varargs");
  kwargs_name_ = id_of("kwargs");
}

NameId Interpreter::id_of(std::string_view name) const {
  const auto found = std::find(syntax_.names.begin(), syntax_.names.end(), name);
  return static_cast<NameId>(found - syntax_.names.begin());
}

Interpreter::~Interpreter() {
  for (const auto& scope : kept_scopes_) scope->variables.clear();
  for (const auto& space : namespaces_) space->attributes.clear();
}

std::optional<Value> Interpreter::global(std::string_view name) {
  const bool transformers = syntax_.dialect == Dialect::transformers;
  if (transformers && name == "raise_exception") return function("raise_exception", raise_exception);
  if (name == "range") return function("range", range);
  if (name == "dict") return function("dict", dict);
  if (name == "namespace")
    return function("namespace",
                    [this](const Arguments& arguments, Budget&) { return make_namespace(arguments); });
  if (transformers && name == "strftime_now")
    return function("strftime_now", [this](const Arguments& arguments, Budget&) -> Value {
      const Parameters parameters("strftime_now", arguments, {"format"});
      const std::string& format = parameters.text(0);
      std::array<char, 1000> text;
      const auto size =
          format.size() > 200 ? 0 : std::strftime(text.data(), text.size(), format.c_str(), &now_);
      if (size == 0 && !format.empty())
        throw TemplateFault{"strftime_now has the format " + io::quote(format) + ", which Retort lacks"};
      return std::string(text.data(), size);
    });
  return std::nullopt;
}

Value Interpreter::make_namespace(const Arguments& arguments) {
  const Value map = dict(arguments, budget_);
  auto space = std::make_shared<Namespace>();
  for (const auto& [key, value] : map.map()->entries()) {
    const auto* name = key.text();
    if (name == nullptr || name->starts_with('_'))
      throw TemplateFault{"a namespace has an attribute that is no name, or begins with an underscore"};
    space->attributes[*name] = value;
  }
  budget_.make(256);
  namespaces_.push_back(space);
  return space;
}

Value Interpreter::judged(Value value) const {
  return syntax_.dialect == Dialect::plain ? std::move(value).as_strict() : std::move(value);
}

Value Interpreter::evaluate(const Expression& node) {
  // As in Jinja an "if" without "else" is empty text even where undefined names are errors.
  return node.kind == Expression::Kind::conditional ? value_of(node) : judged(value_of(node));
}

Value Interpreter::value_of(const Expression& node) {
  const Deeper deeper(*this);
  budget_.step();
  const auto operand = [&](std::size_t i) { return evaluate(*node.operands[i]); };
  switch (node.kind) {
    case Expression::Kind::constant:
      return node.constant;
    case Expression::Kind::name:
      return value_of_name(node);
    case Expression::Kind::list:
    case Expression::Kind::tuple:
      return list_of(node);
    case Expression::Kind::map:
      return map_of(node);
    case Expression::Kind::attribute:
      return attribute_of(operand(0), node.word, budget_);
    case Expression::Kind::item: {
      const Value value = operand(0);
      return item_of(value, operand(1), budget_);
    }
    case Expression::Kind::slice:
      return slice(node);
    case Expression::Kind::call:
      return call(node);
    case Expression::Kind::filter:
      return filter(node, {});
    case Expression::Kind::test:
      return test(node);
    case Expression::Kind::negate:
      return !is_true(operand(0));
    case Expression::Kind::minus:
      return negative(operand(0));
    case Expression::Kind::plus: {
      const Value value = operand(0);
      return value.whole() ? Value(*value.whole()) : value.number() ? value : negative(value);
    }
    case Expression::Kind::arithmetic: {
      const Value left = operand(0);
      return arithmetic(node.word, left, operand(1), budget_);
    }
    case Expression::Kind::compare:
      return comparison(node);
    case Expression::Kind::conjunction: {
      Value left = operand(0);
      return is_true(left) ? operand(1) : left;
    }
    case Expression::Kind::disjunction: {
      Value left = operand(0);
      return is_true(left) ? left : operand(1);
    }
    case Expression::Kind::join:
      return join(node);
    case Expression::Kind::conditional:
      if (is_true(operand(0))) return operand(1);
      return node.operands[2] ? operand(2) : Value::undefined("an \"if\" without \"else\" has no value");
  }
  return {};
}

Value Interpreter::value_of_name(const Expression& node) {
  for (Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get())
    if (const Value* value = scope->find(node.name)) return *value;
  const auto& given = globals_[node.name];
  return given ? *given : Value::undefined(io::quote(node.word) + " is undefined");
}

Value Interpreter::list_of(const Expression& node) {
  Values items;
  for (const auto& item : node.operands) items.push_back(evaluate(*item));
  return make_sequence(node.kind == Expression::Kind::list ? SequenceKind::list : SequenceKind::tuple,
                       std::move(items), budget_);
}

Value Interpreter::map_of(const Expression& node) {
  Map map;
  for (std::size_t i = 0; i + 1 < node.operands.size(); i += 2) {
    Value key = evaluate(*node.operands[i]);
    map.set(std::move(key), evaluate(*node.operands[i + 1]));
  }
  return make_map(std::move(map), budget_);
}

Arguments Interpreter::arguments_of(const Expression& node) {
  Arguments arguments;
  for (std::size_t i = 1; i < node.operands.size(); ++i)
    arguments.positional.push_back(evaluate(*node.operands[i]));
  for (const auto& [name, value] : node.named) arguments.named.emplace_back(name, evaluate(*value));
  return arguments;
}

Value Interpreter::call(const Expression& node) {
  const Value callee = evaluate(*node.operands[0]);
  const auto arguments = arguments_of(node);
  line_ = node.line;
  return invoke(callee, arguments);
}

Value Interpreter::invoke(const Value& callee, const Arguments& arguments) {
  if (const auto* undefined = callee.as<Undefined>())
    throw TemplateFault{"it calls what is undefined: " +
                        (undefined->why ? *undefined->why : std::string("a value"))};
  const auto* callable = callee.as<std::shared_ptr<const Callable>>();
  if (callable == nullptr) throw TemplateFault{"it calls a " + type_name(callee) + ", which is no function"};
  const auto kept = *callable;  // what it is found by may be assigned to meanwhile
  return kept->call(arguments, budget_);
}

Value Interpreter::filter(const Expression& node, const Value& block) {
  const Deeper deeper(*this);
  const auto& operand = node.operands[0];
  const Value value = operand == nullptr                          ? block
                      : operand->kind == Expression::Kind::filter ? filter(*operand, block)
                                                                  : evaluate(*operand);
  const auto arguments = arguments_of(node);
  line_ = node.line;
  return filtered_here(node.word, value, arguments);
}

Value Interpreter::filtered_here(const std::string& name, const Value& value, const Arguments& arguments) {
  if (syntax_.dialect == Dialect::transformers) return filtered(name, value, arguments, budget_);
  if (name == "tojson") return json_for_html(value, arguments, budget_);
  if (name == "regex_replace") return replaced_by_regex(value, arguments, budget_);
  Value result = filtered(name, value, arguments, budget_);
  if (name != "map") return judged(std::move(result));
  Values items = items_of(result, budget_);
  for (Value& item : items) item = judged(std::move(item));
  return make_sequence(SequenceKind::generator, std::move(items), budget_);
}

Value Interpreter::test(const Expression& node) {
  const Value value = evaluate(*node.operands[0]);
  const auto arguments = arguments_of(node);
  line_ = node.line;
  return passes(node.word, value, arguments, budget_);
}

Value Interpreter::comparison(const Expression& node) {
  Value left = evaluate(*node.operands[0]);
  for (std::size_t i = 0; i < node.signs.size(); ++i) {
    Value right = evaluate(*node.operands[i + 1]);
    if (!compare(node.signs[i], left, right, budget_)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::slice(const Expression& node) {
  const Value value = evaluate(*node.operands[0]);
  std::array<std::optional<Value>, 3> bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i)
    if (node.operands[i + 1]) bounds[i] = evaluate(*node.operands[i + 1]);
  const auto bound = [&](std::size_t i) { return bounds[i] ? &*bounds[i] : nullptr; };
  return slice_of(value, bound(0), bound(1), bound(2), budget_);
}

Value Interpreter::join(const Expression& node) {
  std::string text;
  for (const auto& part : node.operands) text += to_text(evaluate(*part), budget_);
  return make_text(std::move(text), budget_);
}

Rendering render(const Syntax& syntax, std::vector<std::pair<std::string, Value>> variables,
                 const std::tm& now) {
  Interpreter interpreter(syntax, std::move(variables), now);
  try {
    return interpreter.run();
  } catch (TemplateFault& fault) {
    if (fault.line == 0) fault.line = interpreter.line();
    throw;
  }
}

}  // namespace retort::chat
