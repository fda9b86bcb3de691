// The rules and their order are those of Jinja's parser.py.
#include "retort/chat/template_expression_parser.h"

#include <algorithm>
#include <utility>

#include "retort/chat/template_limits.h"
#include "retort/chat/template_names.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

std::unique_ptr<Expression> make(Expression::Kind kind, int line) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

ExpressionPtr constant(Value value, int line) {
  auto node = make(Expression::Kind::constant, line);
  node->constant = std::move(value);
  return node;
}

bool is_python_method(std::string_view name) {
  return python_has_text_method(name) || python_has_map_method(name) || python_has_list_method(name);
}

}  // namespace

NameId ExpressionParser::name_id(const std::string& name) {
  const auto [entry, is_new] = ids_.try_emplace(name, static_cast<NameId>(names_.size()));
  if (is_new) names_.push_back(name);
  return entry->second;
}

void ExpressionParser::add(Expression& node, ExpressionPtr operand) const {
  if (operand) node.depth = std::max(node.depth, operand->depth + 1);
  if (node.depth > kDeepestSyntax) fail("an expression is nested more than 200 deep", node.line);
  node.operands.push_back(std::move(operand));
}

template <typename... Operands>
ExpressionPtr ExpressionParser::made(Expression::Kind kind, int line, std::string word,
                                     Operands... operands) const {
  auto node = make(kind, line);
  node->word = std::move(word);
  (add(*node, std::move(operands)), ...);
  return node;
}

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const auto level = deeper("an expression is");
  return with_conditional ? conditional() : disjunction();
}

ExpressionPtr ExpressionParser::conditional() {
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

ExpressionPtr ExpressionParser::disjunction() {
  auto left = conjunction();
  while (is_word("or")) {
    const int line = take().line;
    left = made(Expression::Kind::disjunction, line, "", std::move(left), conjunction());
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  auto left = negation();
  while (is_word("and")) {
    const int line = take().line;
    left = made(Expression::Kind::conjunction, line, "", std::move(left), negation());
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!is_word("not")) return comparison();
  const int line = take().line;
  const auto level = deeper("an expression is");
  return made(Expression::Kind::negate, line, "", negation());
}

std::string ExpressionParser::comparison_sign() {
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

ExpressionPtr ExpressionParser::comparison() {
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
ExpressionPtr ExpressionParser::chain(Words signs, const Operand& operand) {
  auto left = operand();
  for (;;) {
    const bool goes_on = std::any_of(signs.begin(), signs.end(), [&](auto sign) { return is_sign(sign); });
    if (!goes_on) return left;
    const Token sign = take();
    left = made(Expression::Kind::arithmetic, sign.line, sign.text, std::move(left), operand());
  }
}

ExpressionPtr ExpressionParser::sum() {
  return chain({"+", "-"}, [this] { return join(); });
}

ExpressionPtr ExpressionParser::join() {
  const int line = now().line;
  auto first = product();
  if (!is_sign("~")) return first;
  auto node = make(Expression::Kind::join, line);
  add(*node, std::move(first));
  while (skip_sign("~")) add(*node, product());
  return node;
}

ExpressionPtr ExpressionParser::product() {
  return chain({"*", "/", "//", "%"}, [this] { return power(); });
}

ExpressionPtr ExpressionParser::power() {
  return chain({"**"}, [this] { return unary(true); });
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const auto level = deeper("an expression is");
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

ExpressionPtr ExpressionParser::primary() {
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

ExpressionPtr ExpressionParser::word() {
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

ExpressionPtr ExpressionParser::list() {
  auto node = make(Expression::Kind::list, take().line);
  while (!is_sign("]")) {
    if (!node->operands.empty()) expect_sign(",");
    if (is_sign("]")) break;
    add(*node, expression());
  }
  expect_sign("]");
  return node;
}

ExpressionPtr ExpressionParser::map() {
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

ExpressionPtr ExpressionParser::tuple(Words ends, bool with_conditional, bool in_brackets) {
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

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
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

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr node) {
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

ExpressionPtr ExpressionParser::attribute(ExpressionPtr of) {
  const int line = take().line;
  if (now().kind == TokenKind::whole)
    return made(Expression::Kind::item, line, "", std::move(of), constant(take().whole, line));
  const auto name = expect_name();
  if (name.starts_with('_'))
    fail("it uses the attribute " + io::quote(name) + ", which begins with an underscore and is refused",
         line);
  return made(Expression::Kind::attribute, line, name, std::move(of));
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr of) {
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

void ExpressionParser::arguments(Expression& node) {
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

ExpressionPtr ExpressionParser::call(ExpressionPtr of) {
  auto node = make(Expression::Kind::call, now().line);
  if (of->kind == Expression::Kind::attribute && is_python_method(of->word) && !has_method(of->word))
    lacks("the method " + io::quote(of->word), of->line);
  add(*node, std::move(of));
  arguments(*node);
  return node;
}

std::string ExpressionParser::dotted_name() {
  auto name = expect_name();
  while (skip_sign(".")) name += "." + expect_name();
  return name;
}

void ExpressionParser::require_known(const char* what, const std::string& name, bool have, bool jinja_has,
                                     int line) const {
  if (have) return;
  if (jinja_has) lacks(std::string("the ") + what + " " + io::quote(name), line);
  if (!soft_) fail(std::string("there is no ") + what + " " + io::quote(name), line);
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr of) {
  take();
  return filter_name(std::move(of));
}

ExpressionPtr ExpressionParser::filter_name(ExpressionPtr of) {
  auto node = make(Expression::Kind::filter, now().line);
  node->word = dotted_name();
  require_known("filter", node->word, has_filter(node->word, dialect()), jinja_has_filter(node->word),
                node->line);
  add(*node, std::move(of));
  if (is_sign("(")) arguments(*node);
  return node;
}

bool ExpressionParser::test_has_argument() const {
  if (is_any_word({"else", "or", "and"})) return false;
  const auto kind = now().kind;
  return kind == TokenKind::name || kind == TokenKind::text || kind == TokenKind::whole ||
         kind == TokenKind::real || is_sign("[") || is_sign("{");
}

ExpressionPtr ExpressionParser::test(ExpressionPtr of) {
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

}  // namespace retort::chat
