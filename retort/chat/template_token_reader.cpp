#include "retort/chat/template_token_reader.h"

#include <algorithm>

#include "retort/chat/template_limits.h"
#include "retort/io/quote.h"

namespace retort::chat {

const Token& TokenReader::after() const {
  return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

Token TokenReader::take() {
  Token token = now();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenReader::is_any_word(Words words) const {
  return std::any_of(words.begin(), words.end(), [&](auto word) { return is_word(word); });
}

void TokenReader::expect(TokenKind kind, const char* what) {
  if (now().kind != kind) fail(std::string("expected ") + what + ", found " + shown());
  take();
}

void TokenReader::expect_sign(std::string_view sign) {
  if (!skip_sign(sign)) fail("expected " + io::quote(sign) + ", found " + shown());
}

std::string TokenReader::expect_name() {
  if (now().kind != TokenKind::name) fail("expected a name, found " + shown());
  return take().text;
}

std::string TokenReader::shown() const {
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

void TokenReader::fail(const std::string& reason, int line) const {
  throw TemplateFault{reason, line > 0 ? line : now().line};
}

void TokenReader::lacks(const std::string& what, int line) const {
  fail("it uses " + what + ", which Retort lacks", line);
}

Within<int> TokenReader::deeper(const char* what) {
  if (depth_ >= kDeepestSyntax) fail(std::string(what) + " nested more than 200 deep");
  return {depth_, depth_ + 1};
}

}  // namespace retort::chat
