#include <string>

#include "retort/chat/python_text.h"
#include "retort/chat/template_loop.h"
#include "retort/chat/template_scope.h"
#include "retort/io/quote.h"

namespace retort::chat {

Rendering Interpreter::run() {
  carry_out(syntax_.body);
  rendering_.text = std::move(rendered_);
  return std::move(rendering_);
}

void Interpreter::write(std::string_view text) {
  if (out_ == &rendered_ && text.size() > kLargestRendered - std::min(rendered_.size(), kLargestRendered))
    throw TemplateFault{"it writes more than 64 MiB"};
  budget_.make(text.size());
  *out_ += text;
}

Interpreter::Flow Interpreter::carry_out(const Block& block) {
  for (const auto& statement : block) {
    const Flow flow = carry_out(*statement);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::carry_out(const Statement& statement) {
  const Deeper deeper(*this);
  budget_.step();
  line_ = statement.line;
  switch (statement.kind) {
    case Statement::Kind::data:
      write(statement.text);
      break;
    case Statement::Kind::print:
      write(to_text(evaluate(*statement.expressions[0]), budget_));
      break;
    case Statement::Kind::branch:
      return branch(statement);
    case Statement::Kind::loop:
      return loop(statement);
    case Statement::Kind::set:
      assign(statement.targets[0], evaluate(*statement.expressions[0]));
      break;
    case Statement::Kind::set_block:
      return set_block(statement);
    case Statement::Kind::macro:
      define_macro(statement);
      break;
    case Statement::Kind::call:
      call_block(statement);
      break;
    case Statement::Kind::filter: {
      auto [text, flow] = captured(scope_, [&] { return carry_out(statement.blocks[0]); });
      if (flow != Flow::on) return flow;
      write(to_text(filter(*statement.expressions[0], std::move(text)), budget_));
      break;
    }
    case Statement::Kind::with:
      return with(statement);
    case Statement::Kind::leave_loop:
      return Flow::leave_loop;
    case Statement::Kind::next_item:
      return Flow::next_item;
    case Statement::Kind::generation:
      generation(statement);
      break;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::branch(const Statement& statement) {
  for (std::size_t i = 0; i < statement.expressions.size(); ++i)
    if (is_true(evaluate(*statement.expressions[i]))) return carry_out(statement.blocks[i]);
  return statement.blocks.size() > statement.expressions.size() ? carry_out(statement.blocks.back())
                                                                : Flow::on;
}

Interpreter::Flow Interpreter::loop(const Statement& statement) {
  auto items = items_of(evaluate(*statement.expressions[0]), budget_);
  const auto outer = scope_;
  LoopState::Test test;
  if (statement.expressions[1])
    test = [&](const Value& item) {
      const Inside inside(*this, outer);
      assign(statement.targets[0], item);
      return is_true(evaluate(*statement.expressions[1]));
    };
  const auto state = std::make_shared<LoopState>(std::move(items), std::move(test));
  const Finally finish{[&] { state->finish(); }};
  while (state->advance()) {
    budget_.step();
    if (loop_body(statement, outer, *state, state) == Flow::leave_loop) break;
  }
  if (state->index0() >= 0 || statement.blocks.size() < 2) return Flow::on;
  const Inside inside(*this, outer);
  return carry_out(statement.blocks[1]);
}

Interpreter::Flow Interpreter::loop_body(const Statement& statement, const std::shared_ptr<Scope>& outer,
                                         LoopState& state, const Value& variable) {
  const Inside inside(*this, outer);
  scope_->set(loop_name_, variable);
  assign(statement.targets[0], state.item());
  return carry_out(statement.blocks[0]);
}

Interpreter::Flow Interpreter::set_block(const Statement& statement) {
  auto [text, flow] = captured(scope_, [&] { return carry_out(statement.blocks[0]); });
  if (flow != Flow::on) return flow;
  Value value(std::move(text));
  if (statement.expressions[0]) value = filter(*statement.expressions[0], value);
  assign(statement.targets[0], value);
  return Flow::on;
}

Interpreter::Flow Interpreter::with(const Statement& statement) {
  Values values;
  for (const auto& expression : statement.expressions) values.push_back(evaluate(*expression));
  const Inside inside(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(statement.targets[i], values[i]);
  return carry_out(statement.blocks[0]);
}

void Interpreter::define_macro(const Statement& statement) {
  const NameId name = statement.targets[0].name;
  scope_->set(name, function_of(statement, syntax_.names[name]));
}

void Interpreter::call_block(const Statement& statement) {
  const Expression& node = *statement.expressions[0];
  const Value callee = evaluate(*node.operands[0]);
  auto arguments = arguments_of(node);
  arguments.named.emplace_back("caller", function_of(statement, "caller"));
  line_ = statement.line;
  write(to_text(invoke(callee, arguments), budget_));
}

void Interpreter::generation(const Statement& statement) {
  const auto text = captured(scope_, [&] { return carry_out(statement.blocks[0]); }).first;
  // As transformers counts: from what the template itself has written, macros left out.
  rendering_.answers.emplace_back(rendered_.size(), rendered_.size() + text.size());
  write(text);
}

Value Interpreter::function_of(const Statement& statement, std::string name) {
  budget_.make(512);
  kept_scopes_.push_back(scope_);
  return std::make_shared<const Callable>(
      Callable{name, [this, &statement, name, closure = scope_](const Arguments& arguments, Budget&) {
                 return call_macro(statement, name, closure, arguments);
               }});
}

Value Interpreter::call_macro(const Statement& statement, const std::string& name,
                              const std::shared_ptr<Scope>& closure, const Arguments& arguments) {
  const Deeper deeper(*this);
  const int line = line_;
  auto text = captured(closure, [&] {
                set_parameters(statement, name, arguments);
                return carry_out(statement.blocks[0]);
              }).first;
  line_ = line;
  return text;
}

void Interpreter::set_parameters(const Statement& statement, const std::string& name,
                                 const Arguments& arguments) {
  const auto& [parameters, defaults, caller, varargs, kwargs] = statement.signature;
  set_special(statement, name, arguments);
  const auto first_default = parameters.size() - defaults.size();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& parameter = syntax_.names[parameters[i]];
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == parameter; });
    if (i < arguments.positional.size())
      scope_->set(parameters[i], arguments.positional[i]);
    else if (named != arguments.named.end())
      scope_->set(parameters[i], named->second);
    else if (i >= first_default)
      scope_->set(parameters[i], evaluate(*defaults[i - first_default]));
    else
      scope_->set(parameters[i],
                  Value::undefined("the parameter " + io::quote(parameter) + " was not provided"));
  }
}

// What is left of the arguments: caller, varargs and kwargs, where the body asks for them.
void Interpreter::set_special(const Statement& statement, const std::string& name,
                              const Arguments& arguments) {
  const Signature& signature = statement.signature;
  Map others;
  Value caller = Value::undefined("there is no caller");
  for (const auto& argument : arguments.named) {
    const auto& given = argument.first;
    const Value& value = argument.second;
    const auto& parameters = signature.parameters;
    const auto at = std::find_if(parameters.begin(), parameters.end(),
                                 [&](NameId id) { return syntax_.names[id] == given; });
    if (at != parameters.end() && at - parameters.begin() >= std::ssize(arguments.positional)) continue;
    if (signature.uses_caller && given == "caller")
      caller = value;
    else if (signature.uses_kwargs)
      others.set(given, value);
    else
      throw TemplateFault{"the macro " + io::quote(name) + " takes no argument " + io::quote(given)};
  }
  Values rest;
  for (auto i = signature.parameters.size(); i < arguments.positional.size(); ++i)
    rest.push_back(arguments.positional[i]);
  if (!rest.empty() && !signature.uses_varargs)
    throw TemplateFault{"the macro " + io::quote(name) + " takes at most " +
                        std::to_string(signature.parameters.size()) + " arguments"};
  if (signature.uses_caller) scope_->set(caller_name_, caller);
  if (signature.uses_kwargs) scope_->set(kwargs_name_, make_map(std::move(others), budget_));
  if (signature.uses_varargs)
    scope_->set(varargs_name_, make_sequence(SequenceKind::tuple, std::move(rest), budget_));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    const auto items = items_of(value, budget_);
    if (items.size() != target.parts.size())
      throw TemplateFault{"it assigns " + std::to_string(items.size()) + " values to " +
                          std::to_string(target.parts.size()) + " names"};
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) return scope_->set(target.name, value);
  Expression name;
  name.name = target.name;
  name.word = syntax_.names[target.name];
  const Value space = value_of_name(name);
  const auto* there = space.as<std::shared_ptr<Namespace>>();
  if (there == nullptr)
    throw TemplateFault{"it assigns to an attribute of " + io::quote(name.word) + ", which is no namespace"};
  (*there)->attributes[target.attribute] = value;
}

}  // namespace retort::chat
