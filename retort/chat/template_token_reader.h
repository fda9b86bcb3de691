#pragma once
// The tokens of a template, taken one after the other.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/chat/template_lexer.h"

namespace retort::chat {

using Words = std::initializer_list<std::string_view>;

/// Restores a member when a part of the template ends.
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

/// What is expected and is not there throws TemplateFault.
class TokenReader {
 public:
  /// Throws TemplateFault for what has no tokens.
  TokenReader(std::string_view source, Dialect dialect)
      : tokens_(tokens_of(source, dialect)), dialect_(dialect) {}

 protected:
  Dialect dialect() const { return dialect_; }
  const Token& now() const { return tokens_[at_]; }
  const Token& after() const;
  Token take();
  bool is_sign(std::string_view sign) const { return now().kind == TokenKind::sign && now().text == sign; }
  bool is_word(std::string_view word) const { return now().kind == TokenKind::name && now().text == word; }
  bool is_any_word(Words words) const;
  bool skip_sign(std::string_view sign) { return is_sign(sign) && (take(), true); }
  bool skip_word(std::string_view word) { return is_word(word) && (take(), true); }
  void expect(TokenKind kind, const char* what);
  void expect_sign(std::string_view sign);
  std::string expect_name();

  /// The token that stands here, for a message.
  std::string shown() const;
  /// `line`: 0 for that of the token that stands here.
  [[noreturn]] void fail(const std::string& reason, int line = 0) const;
  [[noreturn]] void lacks(const std::string& what, int line = 0) const;

  /// One level deeper until it ends; fails beyond kDeepestSyntax, and says that `what` is nested too deep.
  Within<int> deeper(const char* what);

 private:
  std::vector<Token> tokens_;
  Dialect dialect_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace retort::chat
