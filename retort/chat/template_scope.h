#pragma once
// The state of a rendering, and what evaluates expressions and carries out statements in it.

#include <algorithm>
#include <optional>
#include <utility>

#include "retort/chat/template_interpreter.h"

namespace retort::chat {

struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<NameId, Value>> variables;

  Value* find(NameId name) {
    for (auto& [id, value] : variables)
      if (id == name) return &value;
    return nullptr;
  }
  void set(NameId name, Value value) {
    if (Value* there = find(name))
      *there = std::move(value);
    else
      variables.emplace_back(name, std::move(value));
  }
};

class Interpreter {
 public:
  Interpreter(const Syntax& syntax, std::vector<std::pair<std::string, Value>> variables, const std::tm& now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Rendering run();
  /// Of what was going on when a fault was thrown.
  int line() const { return line_; }

 private:
  enum class Flow { on, leave_loop, next_item };
  // Counts how deep expressions, statements and macros lie in each other.
  class Deeper {
   public:
    explicit Deeper(Interpreter& interpreter) : depth_(interpreter.depth_) {
      if (++depth_ > kDeepestCalls) {
        --depth_;
        throw TemplateFault{"its macros call each other more deeply than Retort follows"};
      }
    }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  // Expressions.
  Value evaluate(const Expression& node);
  Value value_of(const Expression& node);
  // The value, where the dialect says so strict.
  Value judged(Value value) const;
  Value value_of_name(const Expression& node);
  Value list_of(const Expression& node);
  Value map_of(const Expression& node);
  Value call(const Expression& node);
  Value invoke(const Value& callee, const Arguments& arguments);
  Value filter(const Expression& node, const Value& block);
  Value filtered_here(const std::string& name, const Value& value, const Arguments& arguments);
  Value test(const Expression& node);
  Value comparison(const Expression& node);
  Value slice(const Expression& node);
  Value join(const Expression& node);
  Arguments arguments_of(const Expression& node);

  // The number of a name, or one that no name has.
  NameId id_of(std::string_view name) const;

  // Functions that a template finds.
  std::optional<Value> global(std::string_view name);
  Value make_namespace(const Arguments& arguments);

  // Statements.
  Flow carry_out(const Block& block);
  Flow carry_out(const Statement& statement);
  Flow branch(const Statement& statement);
  Flow loop(const Statement& statement);
  Flow loop_body(const Statement& statement, const std::shared_ptr<Scope>& outer, LoopState& state,
                 const Value& variable);
  Flow set_block(const Statement& statement);
  Flow with(const Statement& statement);
  void define_macro(const Statement& statement);
  void call_block(const Statement& statement);
  void generation(const Statement& statement);
  Value function_of(const Statement& statement, std::string name);
  Value call_macro(const Statement& statement, const std::string& name, const std::shared_ptr<Scope>& closure,
                   const Arguments& arguments);
  void set_parameters(const Statement& statement, const std::string& name, const Arguments& arguments);
  void set_special(const Statement& statement, const std::string& name, const Arguments& arguments);
  void assign(const Target& target, const Value& value);
  void write(std::string_view text);

  // The text that `work` writes in a scope of its own below `parent`, and how it ends.
  template <typename Work>
  std::pair<std::string, Flow> captured(std::shared_ptr<Scope> parent, const Work& work) {
    const Inside inside(*this, std::move(parent));
    std::string buffer;
    std::string* const before = std::exchange(out_, &buffer);
    const Finally restore{[&] { out_ = before; }};
    const Flow flow = work();
    return {std::move(buffer), flow};
  }

  template <typename Function>
  struct Finally {
    Function function;
    ~Finally() { function(); }
  };
  template <typename Function>
  Finally(Function) -> Finally<Function>;

  // A scope for a part of the template.
  class Inside {
   public:
    Inside(Interpreter& interpreter, std::shared_ptr<Scope> parent) : interpreter_(interpreter) {
      auto scope = std::make_shared<Scope>();
      scope->parent = std::move(parent);
      before_ = std::exchange(interpreter.scope_, std::move(scope));
    }
    ~Inside() { interpreter_.scope_ = std::move(before_); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Interpreter& interpreter_;
    std::shared_ptr<Scope> before_;
  };

  const Syntax& syntax_;
  const std::tm& now_;
  Budget budget_;
  std::vector<std::optional<Value>> globals_;  ///< by name: what is given, and functions
  NameId loop_name_ = 0, caller_name_ = 0, varargs_name_ = 0, kwargs_name_ = 0;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::string rendered_;
  std::string* out_ = &rendered_;
  Rendering rendering_;
  int depth_ = 0;
  int line_ = 0;
  // Macros keep scopes and namespaces keep values, which may hold them in turn; they are emptied at the end.
  std::vector<std::shared_ptr<Scope>> kept_scopes_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

}  // namespace retort::chat
