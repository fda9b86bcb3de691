// A parser by recursive descent; the rules and their order are those of Jinja's parser.py.
#include "retort/chat/template_parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <unordered_map>
#include <utility>

#include "retort/chat/template_lexer.h"
#include "retort/chat/template_limits.h"
#include "retort/chat/template_names.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

using Words = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokens_of(source)) {}

  Syntax run() {
    syntax_.body = statements({});
    return std::move(syntax_);
  }

 private:
  // Which of its special names the body of a macro uses.
  struct Special {
    bool caller = false, varargs = false, kwargs = false;
  };
  // Restores a member when a part of the template ends.
  template <typename T>
  class Within {
   public:
    Within(T& member, T value) : member_(member), before_(std::exchange(member, value)) {}
    ~Within() { member_ = before_; }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    T& member_;
    T before_;
  };

  // ---- tokens

  const Token& now() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() {
    Token token = now();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is_sign(std::string_view sign) const { return now().kind == TokenKind::sign && now().text == sign; }
  bool is_word(std::string_view word) const { return now().kind == TokenKind::name && now().text == word; }
  bool is_any_word(Words words) const {
    return std::any_of(words.begin(), words.end(), [&](auto word) { return is_word(word); });
  }
  bool skip_sign(std::string_view sign) { return is_sign(sign) && (take(), true); }
  bool skip_word(std::string_view word) { return is_word(word) && (take(), true); }

  [[noreturn]] void fail(const std::string& reason, int line = 0) const {
    throw TemplateFault{reason, line > 0 ? line : now().line};
  }
  [[noreturn]] void lacks(const std::string& what, int line = 0) const {
    fail("it uses " + what + ", which Retort lacks", line);
  }

  std::string shown() const {
    switch (now().kind) {
      case TokenKind::end:
        return "the end of the template";
      case TokenKind::print_end:
        return "\"}}\"";
      case TokenKind::block_end:
        return "\"%}\"";
      case TokenKind::whole:
      case TokenKind::real:
        return "a number";
      default:
        return io::quote(now().text);
    }
  }

  void expect_sign(std::string_view sign) {
    if (!skip_sign(sign)) fail("expected " + io::quote(sign) + ", found " + shown());
  }
  std::string expect_name() {
    if (now().kind != TokenKind::name) fail("expected a name, found " + shown());
    return take().text;
  }
  void expect(TokenKind kind, const char* what) {
    if (now().kind != kind) fail(std::string("expected ") + what + ", found " + shown());
    take();
  }

  NameId name_id(const std::string& name) {
    const auto [entry, is_new] = ids_.try_emplace(name, static_cast<NameId>(syntax_.names.size()));
    if (is_new) syntax_.names.push_back(name);
    return entry->second;
  }

  // ---- expressions

  std::unique_ptr<Expression> make(Expression::Kind kind, int line) const {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    return node;
  }

  void add(Expression& node, ExpressionPtr operand) const {
    if (operand) node.depth = std::max(node.depth, operand->depth + 1);
    if (node.depth > kDeepestSyntax) fail("an expression is nested more than 200 deep", node.line);
    node.operands.push_back(std::move(operand));
  }

  template <typename... Operands>
  ExpressionPtr made(Expression::Kind kind, int line, std::string word, Operands... operands) const {
    auto node = make(kind, line);
    node->word = std::move(word);
    (add(*node, std::move(operands)), ...);
    return node;
  }

  ExpressionPtr expression(bool with_conditional = true) {
    const Within<int> deeper(depth_, depth_ + 1);
    if (depth_ > kDeepestSyntax) fail("an expression is nested more than 200 deep");
    return with_conditional ? conditional() : disjunction();
  }

  ExpressionPtr conditional() {
    const int line = now().line;
    auto value = disjunction();
    while (skip_word("if")) {
      const Within<bool> soft(soft_, true);
      auto condition = disjunction();
      auto other = skip_word("else") ? expression() : nullptr;
      value = made(Expression::Kind::conditional, line, "", std::move(condition), std::move(value),
                   std::move(other));
    }
    return value;
  }

  ExpressionPtr disjunction() {
    auto left = conjunction();
    while (is_word("or")) {
      const int line = take().line;
      left = made(Expression::Kind::disjunction, line, "", std::move(left), conjunction());
    }
    return left;
  }

  ExpressionPtr conjunction() {
    auto left = negation();
    while (is_word("and")) {
      const int line = take().line;
      left = made(Expression::Kind::conjunction, line, "", std::move(left), negation());
    }
    return left;
  }

  ExpressionPtr negation() {
    if (!is_word("not")) return comparison();
    const int line = take().line;
    const Within<int> deeper(depth_, depth_ + 1);
    if (depth_ > kDeepestSyntax) fail("an expression is nested more than 200 deep");
    return made(Expression::Kind::negate, line, "", negation());
  }

  // The sign of a comparison that stands here, taken; else empty.
  std::string comparison_sign() {
    if (now().kind == TokenKind::sign)
      for (const auto sign : {"==", "!=", "<", "<=", ">", ">="})
        if (skip_sign(sign)) return sign;
    if (skip_word("in")) return "in";
    if (is_word("not") && after().kind == TokenKind::name && after().text == "in") {
      take();
      take();
      return "not in";
    }
    return {};
  }

  ExpressionPtr comparison() {
    const int line = now().line;
    auto first = sum();
    auto sign = comparison_sign();
    if (sign.empty()) return first;
    auto node = make(Expression::Kind::compare, line);
    add(*node, std::move(first));
    for (; !sign.empty(); sign = comparison_sign()) {
      node->signs.push_back(sign);
      add(*node, sum());
    }
    return node;
  }

  template <typename Operand>
  ExpressionPtr chain(Words signs, const Operand& operand) {
    auto left = operand();
    for (;;) {
      const bool goes_on = std::any_of(signs.begin(), signs.end(), [&](auto sign) { return is_sign(sign); });
      if (!goes_on) return left;
      const Token sign = take();
      left = made(Expression::Kind::arithmetic, sign.line, sign.text, std::move(left), operand());
    }
  }

  ExpressionPtr sum() {
    return chain({"+", "-"}, [this] { return join(); });
  }

  ExpressionPtr join() {
    const int line = now().line;
    auto first = product();
    if (!is_sign("~")) return first;
    auto node = make(Expression::Kind::join, line);
    add(*node, std::move(first));
    while (skip_sign("~")) add(*node, product());
    return node;
  }

  ExpressionPtr product() {
    return chain({"*", "/", "//", "%"}, [this] { return power(); });
  }
  ExpressionPtr power() {
    return chain({"**"}, [this] { return unary(true); });
  }

  ExpressionPtr unary(bool with_filters) {
    const Within<int> deeper(depth_, depth_ + 1);
    if (depth_ > kDeepestSyntax) fail("an expression is nested more than 200 deep");
    ExpressionPtr node;
    if (is_sign("-") || is_sign("+")) {
      const Token sign = take();
      node = made(sign.text == "-" ? Expression::Kind::minus : Expression::Kind::plus, sign.line, "",
                  unary(false));
    } else {
      node = primary();
    }
    node = postfix(std::move(node));
    return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
  }

  ExpressionPtr constant(Value value, int line) const {
    auto node = make(Expression::Kind::constant, line);
    node->constant = std::move(value);
    return node;
  }

  ExpressionPtr primary() {
    const int line = now().line;
    switch (now().kind) {
      case TokenKind::name:
        return word();
      case TokenKind::text: {
        std::string text;
        while (now().kind == TokenKind::text) text += take().text;
        return constant(std::move(text), line);
      }
      case TokenKind::whole:
        return constant(take().whole, line);
      case TokenKind::real:
        return constant(take().real, line);
      default:
        break;
    }
    if (skip_sign("(")) {
      auto inner = tuple({}, true, true);
      expect_sign(")");
      return inner;
    }
    if (is_sign("[")) return list();
    if (is_sign("{")) return map();
    fail("expected an expression, found " + shown());
  }

  ExpressionPtr word() {
    const Token token = take();
    const std::string& word = token.text;
    if (word == "true" || word == "True") return constant(true, token.line);
    if (word == "false" || word == "False") return constant(false, token.line);
    if (word == "none" || word == "None") return constant(None{}, token.line);
    if (word == "cycler" || word == "joiner" || word == "lipsum" || word == "self" || word == "super")
      lacks("the function " + io::quote(word), token.line);
    special_.caller |= word == "caller";
    special_.varargs |= word == "varargs";
    special_.kwargs |= word == "kwargs";
    auto node = make(Expression::Kind::name, token.line);
    node->name = name_id(word);
    node->word = word;
    return node;
  }

  ExpressionPtr list() {
    auto node = make(Expression::Kind::list, take().line);
    while (!is_sign("]")) {
      if (!node->operands.empty()) expect_sign(",");
      if (is_sign("]")) break;
      add(*node, expression());
    }
    expect_sign("]");
    return node;
  }

  ExpressionPtr map() {
    auto node = make(Expression::Kind::map, take().line);
    while (!is_sign("}")) {
      if (!node->operands.empty()) expect_sign(",");
      if (is_sign("}")) break;
      add(*node, expression());
      expect_sign(":");
      add(*node, expression());
    }
    expect_sign("}");
    return node;
  }

  // One expression, or several with commas between them.
  ExpressionPtr tuple(Words ends, bool with_conditional, bool in_brackets = false) {
    const int line = now().line;
    std::vector<ExpressionPtr> items;
    bool is_tuple = false;
    for (;;) {
      if (!items.empty()) expect_sign(",");
      const bool ended = now().kind == TokenKind::print_end || now().kind == TokenKind::block_end ||
                         is_sign(")") || is_any_word(ends);
      if (ended) break;
      items.push_back(expression(with_conditional));
      if (!is_sign(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && !items.empty()) return std::move(items.front());
    if (!is_tuple && !in_brackets) fail("expected an expression, found " + shown());
    auto node = make(Expression::Kind::tuple, line);
    for (auto& item : items) add(*node, std::move(item));
    return node;
  }

  ExpressionPtr postfix(ExpressionPtr node) {
    for (;;) {
      if (is_sign("."))
        node = attribute(std::move(node));
      else if (is_sign("["))
        node = subscript(std::move(node));
      else if (is_sign("("))
        node = call(std::move(node));
      else
        return node;
    }
  }

  ExpressionPtr filters_and_tests(ExpressionPtr node) {
    for (;;) {
      if (is_sign("|"))
        node = filter(std::move(node));
      else if (is_word("is"))
        node = test(std::move(node));
      else if (is_sign("("))
        node = call(std::move(node));
      else
        return node;
    }
  }

  ExpressionPtr attribute(ExpressionPtr of) {
    const int line = take().line;
    if (now().kind == TokenKind::whole)
      return made(Expression::Kind::item, line, "", std::move(of), constant(take().whole, line));
    const auto name = expect_name();
    if (name.starts_with('_'))
      fail("it uses the attribute " + io::quote(name) + ", which begins with an underscore and is refused",
           line);
    return made(Expression::Kind::attribute, line, name, std::move(of));
  }

  ExpressionPtr subscript(ExpressionPtr of) {
    const int line = take().line;
    ExpressionPtr start;
    if (!is_sign(":")) {
      start = expression();
      if (skip_sign("]")) return made(Expression::Kind::item, line, "", std::move(of), std::move(start));
      if (is_sign(",")) lacks("several indices in one pair of brackets", line);
    }
    expect_sign(":");
    ExpressionPtr stop, step;
    if (!is_sign(":") && !is_sign("]")) stop = expression();
    if (skip_sign(":") && !is_sign("]")) step = expression();
    if (is_sign(",")) lacks("several indices in one pair of brackets", line);
    expect_sign("]");
    return made(Expression::Kind::slice, line, "", std::move(of), std::move(start), std::move(stop),
                std::move(step));
  }

  void arguments(Expression& node) {
    expect_sign("(");
    for (bool first = true; !is_sign(")"); first = false) {
      if (!first) expect_sign(",");
      if (is_sign(")")) break;
      if (is_sign("*") || is_sign("**")) lacks("arguments that are unpacked by " + now().text);
      const bool is_named =
          now().kind == TokenKind::name && after().kind == TokenKind::sign && after().text == "=";
      if (!is_named) {
        if (!node.named.empty()) fail("an argument without a name stands behind one with a name");
        add(node, expression());
        continue;
      }
      auto name = take().text;
      take();
      auto value = expression();
      node.depth = std::max(node.depth, value->depth + 1);
      if (node.depth > kDeepestSyntax) fail("an expression is nested more than 200 deep");
      for (const auto& [other, unused] : node.named)
        if (other == name) fail("the argument " + io::quote(name) + " is given twice");
      node.named.emplace_back(std::move(name), std::move(value));
    }
    expect_sign(")");
  }

  ExpressionPtr call(ExpressionPtr of) {
    auto node = make(Expression::Kind::call, now().line);
    if (of->kind == Expression::Kind::attribute && is_python_method(of->word) && !has_method(of->word))
      lacks("the method " + io::quote(of->word), of->line);
    add(*node, std::move(of));
    arguments(*node);
    return node;
  }

  static bool is_python_method(std::string_view name) {
    return python_has_text_method(name) || python_has_map_method(name) || python_has_list_method(name);
  }

  std::string dotted_name() {
    auto name = expect_name();
    while (skip_sign(".")) name += "." + expect_name();
    return name;
  }

  // A filter or a test that Jinja does not have either may stand where it is never reached.
  void require_known(const char* what, const std::string& name, bool have, bool jinja_has, int line) const {
    if (have) return;
    if (jinja_has) lacks(std::string("the ") + what + " " + io::quote(name), line);
    if (!soft_) fail(std::string("there is no ") + what + " " + io::quote(name), line);
  }

  ExpressionPtr filter(ExpressionPtr of) {
    take();
    return filter_name(std::move(of));
  }

  ExpressionPtr filter_name(ExpressionPtr of) {
    auto node = make(Expression::Kind::filter, now().line);
    node->word = dotted_name();
    require_known("filter", node->word, has_filter(node->word), jinja_has_filter(node->word), node->line);
    add(*node, std::move(of));
    if (is_sign("(")) arguments(*node);
    return node;
  }

  bool test_has_argument() const {
    if (is_any_word({"else", "or", "and"})) return false;
    const auto kind = now().kind;
    return kind == TokenKind::name || kind == TokenKind::text || kind == TokenKind::whole ||
           kind == TokenKind::real || is_sign("[") || is_sign("{");
  }

  ExpressionPtr test(ExpressionPtr of) {
    const int line = take().line;
    const bool negated = skip_word("not");
    auto node = make(Expression::Kind::test, line);
    node->word = dotted_name();
    require_known("test", node->word, has_test(node->word), jinja_has_test(node->word), line);
    add(*node, std::move(of));
    if (is_sign("(")) {
      arguments(*node);
    } else if (test_has_argument()) {
      if (is_word("is")) fail("two tests follow each other; put the first into brackets");
      add(*node, postfix(primary()));
    }
    if (!negated) return node;
    return made(Expression::Kind::negate, line, "", ExpressionPtr(std::move(node)));
  }

  // ---- statements

  // Those up to a block with one of `ends`, whose name is the token behind.
  Block statements(Words ends) {
    const Within<int> deeper(depth_, depth_ + 1);
    if (depth_ > kDeepestSyntax) fail("statements are nested more than 200 deep");
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
    return syntax_.names[target.name] == "loop";
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
    const Within<int> deeper(depth_, depth_ + 1);
    if (depth_ > kDeepestSyntax) fail("what is assigned to is nested more than 200 deep");
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
        fail("a macro has the parameter " + io::quote(syntax_.names[id]) + " twice");
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
    const auto outer = std::exchange(special_, Special{});
    auto block = body(ends);
    signature.uses_caller = special_.caller;
    signature.uses_varargs = special_.varargs;
    signature.uses_kwargs = special_.kwargs;
    for (const auto id : signature.parameters) {
      if (syntax_.names[id] == "caller") lacks("a parameter named \"caller\"");
      signature.uses_varargs &= syntax_.names[id] != "varargs";
      signature.uses_kwargs &= syntax_.names[id] != "kwargs";
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
    syntax_.has_generation = true;
    node->blocks.push_back(function_body(node->signature, {"endgeneration"}));
    take();
    return node;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool soft_ = false;     ///< in a condition or what it decides on
  bool in_loop_ = false;  ///< of the same function
  Special special_;
  Syntax syntax_;
  std::unordered_map<std::string, NameId> ids_;
};

}  // namespace

Syntax parse_template(std::string_view source) {
  if (source.size() > kLargestTemplate) throw TemplateFault{"it has more than 1 MiB"};
  return Parser(source).run();
}

}  // namespace retort::chat
