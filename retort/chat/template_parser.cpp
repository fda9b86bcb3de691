// Statements by recursive descent; the rules and their order are those of Jinja's parser.py.
#include "retort/chat/template_parser.h"

#include <algorithm>
#include <utility>

#include "retort/chat/template_expression_parser.h"
#include "retort/chat/template_limits.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

class StatementParser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Syntax run() {
    auto body = statements({});
    return {.body = std::move(body),
            .names = taken_names(),
            .has_generation = has_generation_,
            .dialect = dialect()};
  }

 private:
  // Those up to a block with one of `ends`, whose name is the token behind.
  Block statements(Words ends) {
    const auto level = deeper("statements are");
    Block block;
    while (now().kind != TokenKind::end) {
      if (now().kind == TokenKind::data) {
        auto node = statement_of(Statement::Kind::data, now().line);
        node->text = take().text;
        block.push_back(std::move(node));
      } else if (now().kind == TokenKind::print_begin) {
        auto node = statement_of(Statement::Kind::print, take().line);
        node->expressions.push_back(tuple({}, true));
        expect(TokenKind::print_end, "\"}}\"");
        block.push_back(std::move(node));
      } else {
        take();
        if (ends.size() > 0 && is_any_word(ends)) return block;
        block.push_back(statement());
        expect(TokenKind::block_end, "\"%}\"");
      }
    }
    if (ends.size() > 0) fail("the template ends where " + io::quote(*ends.begin()) + " is expected");
    return block;
  }

  static std::unique_ptr<Statement> statement_of(Statement::Kind kind, int line) {
    auto node = std::make_unique<Statement>();
    node->kind = kind;
    node->line = line;
    return node;
  }

  // The block of a statement, up to one of `ends`, which is not taken.
  Block body(Words ends) {
    skip_sign(":");
    expect(TokenKind::block_end, "\"%}\"");
    return statements(ends);
  }

  StatementPtr statement() {
    const Token token = now();
    const auto word = expect_name();
    if (word == "if") return branch(token.line);
    if (word == "for") return loop(token.line);
    if (word == "set") return set(token.line);
    if (word == "macro") return macro(token.line);
    if (word == "call") return call_block(token.line);
    if (word == "filter") return filter_block(token.line);
    if (word == "with") return with(token.line);
    if (word == "generation") return generation(token.line);
    if (word == "break" || word == "continue") {
      if (!in_loop_) fail(io::quote(word) + " stands outside of a loop", token.line);
      return statement_of(word == "break" ? Statement::Kind::leave_loop : Statement::Kind::next_item,
                          token.line);
    }
    for (const auto other : {"block", "extends", "print", "include", "from", "import", "autoescape"})
      if (word == other) lacks("the statement " + io::quote(word), token.line);
    fail("there is no statement " + io::quote(word), token.line);
  }

  StatementPtr branch(int line) {
    auto node = statement_of(Statement::Kind::branch, line);
    const Within<bool> soft(soft_, true);
    for (;;) {
      node->expressions.push_back(tuple({}, false));
      node->blocks.push_back(body({"elif", "else", "endif"}));
      const auto word = take().text;
      if (word == "elif") continue;
      if (word == "else") {
        node->blocks.push_back(body({"endif"}));
        take();
      }
      return node;
    }
  }

  StatementPtr loop(int line) {
    auto node = statement_of(Statement::Kind::loop, line);
    node->targets.push_back(target({"in"}, false));
    if (names_loop(node->targets.front())) fail("it assigns to \"loop\" in a loop", line);
    if (!skip_word("in")) fail("expected \"in\", found " + shown());
    node->expressions.push_back(tuple({"recursive"}, false));
    node->expressions.push_back(skip_word("if") ? expression() : nullptr);
    if (is_word("recursive")) lacks("a loop that calls itself (\"recursive\")", line);
    const Within<bool> soft(soft_, false);
    {
      const Within<bool> inside(in_loop_, true);
      node->blocks.push_back(body({"endfor", "else"}));
    }
    if (take().text == "else") {
      node->blocks.push_back(body({"endfor"}));
      take();
    }
    return node;
  }

  bool names_loop(const Target& target) const {
    if (target.is_tuple)
      return std::any_of(target.parts.begin(), target.parts.end(),
                         [&](const auto& part) { return names_loop(part); });
    return name(target.name) == "loop";
  }

  Target one_target(bool with_namespace) {
    Target target;
    if (skip_sign("(")) {
      target = this->target({}, with_namespace);
      expect_sign(")");
      return target;
    }
    const auto name = expect_name();
    for (const auto word : {"true", "false", "none", "True", "False", "None"})
      if (name == word) fail("it assigns to " + io::quote(name));
    target.name = name_id(name);
    if (with_namespace && skip_sign(".")) target.attribute = expect_name();
    if (target.attribute.starts_with('_'))
      fail("it assigns to the attribute " + io::quote(target.attribute) +
           ", which begins with an underscore");
    return target;
  }

  Target target(Words ends, bool with_namespace) {
    const auto level = deeper("what is assigned to is");
    Target first = one_target(with_namespace);
    if (!is_sign(",")) return first;
    Target tuple;
    tuple.is_tuple = true;
    tuple.parts.push_back(std::move(first));
    while (skip_sign(",")) {
      if (is_sign("=") || is_sign(")") || now().kind == TokenKind::block_end || is_any_word(ends)) break;
      tuple.parts.push_back(one_target(with_namespace));
    }
    return tuple;
  }

  StatementPtr set(int line) {
    auto target = this->target({}, true);
    if (skip_sign("=")) {
      auto node = statement_of(Statement::Kind::set, line);
      node->targets.push_back(std::move(target));
      node->expressions.push_back(tuple({}, true));
      return node;
    }
    if (target.is_tuple) lacks("a block that is assigned to several names", line);
    auto node = statement_of(Statement::Kind::set_block, line);
    node->targets.push_back(std::move(target));
    ExpressionPtr filters;
    while (is_sign("|")) filters = filter(std::move(filters));
    node->expressions.push_back(std::move(filters));
    const Within<bool> soft(soft_, false);
    node->blocks.push_back(body({"endset"}));
    take();
    return node;
  }

  Signature signature() {
    Signature signature;
    expect_sign("(");
    while (!is_sign(")")) {
      if (!signature.parameters.empty()) expect_sign(",");
      const auto id = name_id(expect_name());
      if (std::count(signature.parameters.begin(), signature.parameters.end(), id) > 0)
        fail("a macro has the parameter " + io::quote(name(id)) + " twice");
      signature.parameters.push_back(id);
      if (skip_sign("="))
        signature.defaults.push_back(expression());
      else if (!signature.defaults.empty())
        fail("a parameter without a default stands behind one with a default");
    }
    expect_sign(")");
    return signature;
  }

  // What a macro or the block of a call does, and which special names it uses.
  Block function_body(Signature& signature, Words ends) {
    const Within<bool> soft(soft_, false);
    const Within<bool> outside(in_loop_, false);
    const auto outer = std::exchange(special_, SpecialNames{});
    auto block = body(ends);
    signature.uses_caller = special_.caller;
    signature.uses_varargs = special_.varargs;
    signature.uses_kwargs = special_.kwargs;
    for (const auto id : signature.parameters) {
      if (name(id) == "caller") lacks("a parameter named \"caller\"");
      signature.uses_varargs &= name(id) != "varargs";
      signature.uses_kwargs &= name(id) != "kwargs";
    }
    special_ = outer;
    return block;
  }

  StatementPtr macro(int line) {
    auto node = statement_of(Statement::Kind::macro, line);
    node->targets.push_back(one_target(false));
    node->signature = signature();
    node->blocks.push_back(function_body(node->signature, {"endmacro"}));
    take();
    return node;
  }

  StatementPtr call_block(int line) {
    auto node = statement_of(Statement::Kind::call, line);
    if (is_sign("(")) node->signature = signature();
    node->expressions.push_back(expression());
    if (node->expressions.front()->kind != Expression::Kind::call) fail("expected a call of a macro", line);
    node->blocks.push_back(function_body(node->signature, {"endcall"}));
    take();
    return node;
  }

  StatementPtr filter_block(int line) {
    auto node = statement_of(Statement::Kind::filter, line);
    auto filters = filter_name(nullptr);
    while (is_sign("|")) filters = filter(std::move(filters));
    node->expressions.push_back(std::move(filters));
    const Within<bool> soft(soft_, false);
    node->blocks.push_back(body({"endfilter"}));
    take();
    return node;
  }

  StatementPtr with(int line) {
    auto node = statement_of(Statement::Kind::with, line);
    while (now().kind != TokenKind::block_end) {
      if (!node->targets.empty()) expect_sign(",");
      node->targets.push_back(one_target(false));
      expect_sign("=");
      node->expressions.push_back(expression());
    }
    const Within<bool> soft(soft_, false);
    node->blocks.push_back(body({"endwith"}));
    take();
    return node;
  }

  StatementPtr generation(int line) {
    auto node = statement_of(Statement::Kind::generation, line);
    has_generation_ = true;
    node->blocks.push_back(function_body(node->signature, {"endgeneration"}));
    take();
    return node;
  }

  bool in_loop_ = false;  ///< of the same function
  bool has_generation_ = false;
};

}  // namespace

Syntax parse_template(std::string_view source, Dialect dialect) {
  if (source.size() > kLargestTemplate) throw TemplateFault{"it has more than 1 MiB"};
  return StatementParser(source, dialect).run();
}

}  // namespace retort::chat
