#pragma once
// The expressions of a template, by recursive descent: a function for each level of precedence, the loosest
// first.

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "retort/chat/template_syntax.h"
#include "retort/chat/template_token_reader.h"

namespace retort::chat {

/// Which of its special names the body of a macro uses.
struct SpecialNames {
  bool caller = false, varargs = false, kwargs = false;
};

class ExpressionParser : public TokenReader {
 public:
  using TokenReader::TokenReader;

 protected:
  ExpressionPtr expression(bool with_conditional = true);
  /// One expression, or several with commas between them up to one of `ends`.
  ExpressionPtr tuple(Words ends, bool with_conditional, bool in_brackets = false);
  /// The filter behind the sign that stands here, on `of`; null on a block.
  ExpressionPtr filter(ExpressionPtr of);
  /// The same behind the sign.
  ExpressionPtr filter_name(ExpressionPtr of);

  NameId name_id(const std::string& name);
  const std::string& name(NameId id) const { return names_[id]; }
  std::vector<std::string> taken_names() { return std::move(names_); }

  bool soft_ = false;  ///< in a condition or what it decides on
  SpecialNames special_;

 private:
  void add(Expression& node, ExpressionPtr operand) const;
  template <typename... Operands>
  ExpressionPtr made(Expression::Kind kind, int line, std::string word, Operands... operands) const;
  ExpressionPtr conditional();
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  /// The sign of a comparison that stands here, taken; else empty.
  std::string comparison_sign();
  ExpressionPtr comparison();
  template <typename Operand>
  ExpressionPtr chain(Words signs, const Operand& operand);
  ExpressionPtr sum();
  ExpressionPtr join();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr word();
  ExpressionPtr list();
  ExpressionPtr map();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters_and_tests(ExpressionPtr node);
  ExpressionPtr attribute(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  void arguments(Expression& node);
  ExpressionPtr call(ExpressionPtr of);
  std::string dotted_name();
  /// A filter or a test that Jinja does not have either may stand where it is never reached.
  void require_known(const char* what, const std::string& name, bool have, bool jinja_has, int line) const;
  bool test_has_argument() const;
  ExpressionPtr test(ExpressionPtr of);

  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> ids_;
};

}  // namespace retort::chat
