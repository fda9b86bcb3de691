#pragma once
// The tokens of a template, as the lexer of Jinja makes them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retort/chat/template_dialect.h"

namespace retort::chat {

enum class TokenKind {
  data,
  print_begin,  ///< {{
  print_end,
  block_begin,  ///< {%
  block_end,
  name,
  text,
  whole,
  real,
  sign,  ///< an operator or a bracket
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  ///< of data, names, texts (without escapes) and signs
  std::int64_t whole = 0;
  double real = 0;
  int line = 0;
};

/// `source` is valid UTF-8.  Throws TemplateFault.  The last token is of kind end.
std::vector<Token> tokens_of(std::string_view source, Dialect dialect);

}  // namespace retort::chat
