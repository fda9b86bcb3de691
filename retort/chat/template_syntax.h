#pragma once
// The syntax tree of a template.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "retort/chat/template_dialect.h"
#include "retort/chat/template_value.h"

namespace retort::chat {

using NameId = std::uint32_t;

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Expression {
  enum class Kind {
    constant,
    name,
    list,
    tuple,
    map,        ///< key, value, key, value, ...
    attribute,  ///< of operand 0, `word`
    item,       ///< of operand 0, at operand 1
    slice,      ///< of operand 0: start, stop and step, each of which may be null
    call,       ///< of operand 0 with the others and `named`
    filter,     ///< `word`, on operand 0, which is null on a block, with the others
    test,       ///< likewise
    negate,     ///< not
    minus,
    plus,
    arithmetic,  ///< `word` is the sign
    compare,     ///< operand 0, and each further one by its sign in `signs`
    conjunction,
    disjunction,
    join,         ///< ~
    conditional,  ///< condition, value, and the other value or null
  };
  Kind kind = Kind::constant;
  int line = 0;
  int depth = 1;
  std::vector<ExpressionPtr> operands;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> signs;
  std::string word;
  NameId name = 0;
  Value constant;
};

/// What is assigned to: a name, an attribute of a namespace, or several of them.
struct Target {
  NameId name = 0;
  std::string attribute;  ///< empty: the name itself
  std::vector<Target> parts;
  bool is_tuple = false;
};

struct Statement;
using StatementPtr = std::unique_ptr<const Statement>;
using Block = std::vector<StatementPtr>;

/// Parameters of a macro; the last ones have defaults.
struct Signature {
  std::vector<NameId> parameters;
  std::vector<ExpressionPtr> defaults;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Statement {
  enum class Kind {
    data,
    print,
    branch,  ///< of `expressions` the first that is true has its block in `blocks`; the last may have none
    loop,    ///< over expression 0, where expression 1 is true or null; block 1 where there are no items
    set,
    set_block,  ///< expression 0 is a chain of filters, or null
    macro,      ///< `target` is its name
    call,       ///< expression 0 with the block as its caller
    filter,
    with,        ///< `targets` have the values of `expressions` in the block
    leave_loop,  ///< break
    next_item,   ///< continue
    generation,  ///< an answer of the model
  };
  Kind kind = Kind::data;
  int line = 0;
  std::string text;
  std::vector<ExpressionPtr> expressions;
  std::vector<Block> blocks;
  std::vector<Target> targets;
  Signature signature;
};

struct Syntax {
  Block body;
  std::vector<std::string> names;
  bool has_generation = false;
  Dialect dialect = Dialect::transformers;
};

}  // namespace retort::chat
