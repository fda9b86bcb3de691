#include "retort/chat/template_lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "retort/chat/code_points.h"
#include "retort/chat/template_limits.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Line ends as \n, and none at the end unless it is kept: Jinja drops one.
std::string with_unix_lines(std::string_view source, bool keeps_end) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (!keeps_end && out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, Dialect dialect)
      : trims_(dialect == Dialect::transformers),
        source_(with_unix_lines(source, dialect == Dialect::plain)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenKind::end);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  [[noreturn]] void fail(const std::string& reason) const { throw TemplateFault{reason, line_}; }

  Token& add(TokenKind kind, std::string text = {}) {
    tokens_.push_back({kind, std::move(text), 0, 0, line_});
    return tokens_.back();
  }

  void advance(std::size_t bytes) {
    const auto passed = rest().substr(0, bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (!passed.empty()) line_starting_ = passed.back() == '\n';
    at_ += bytes;
  }

  // Data up to the next tag, and that tag.
  void root() {
    const auto tag = next_tag();
    const auto text = std::string_view(source_).substr(at_, tag - at_);
    if (tag == std::string::npos) {
      data(text);
      return advance(text.size());
    }
    const char kind = source_[tag + 1];
    const std::size_t begin = tag + 2;
    const char sign =
        begin < source_.size() && (source_[begin] == '-' || source_[begin] == '+') ? source_[begin] : ' ';
    data(stripped_before(text, sign, kind != '{'));
    advance(text.size() + 2 + (sign == ' ' ? 0 : 1));
    if (kind == '#')
      comment();
    else if (kind == '{')
      print();
    else if (!raw())
      block();
  }

  std::size_t next_tag() const {
    for (auto tag = source_.find('{', at_); tag != std::string::npos; tag = source_.find('{', tag + 1)) {
      const char c = tag + 1 < source_.size() ? source_[tag + 1] : ' ';
      if (c == '{' || c == '%' || c == '#') return tag;
    }
    return std::string::npos;
  }

  void data(std::string_view text) {
    if (!text.empty()) add(TokenKind::data, std::string(text));
  }

  // What stays of the data before a tag: a minus takes all white space, a block what indents it.
  std::string_view stripped_before(std::string_view text, char sign, bool is_block) const {
    if (sign == '-') return strip(text, nullptr, Ends::right);
    if (sign == '+' || !is_block || !trims_) return text;
    const auto line = text.rfind('\n') + 1;
    const bool begins_line = line > 0 || line_starting_;
    const bool blank = leading_space(text.substr(line)) == text.size() - line;
    return begins_line && blank ? text.substr(0, line) : text;
  }

  // Bytes of a tag's end at a place, with the white space that belongs to it; nothing where it does not end.
  std::optional<std::size_t> tag_end(std::size_t at, std::string_view end, bool plus, bool newline) const {
    const auto here = std::string_view(source_).substr(at);
    if (plus && here.starts_with('+') && here.substr(1).starts_with(end)) return end.size() + 1;
    if (here.starts_with('-') && here.substr(1).starts_with(end)) {
      const auto size = end.size() + 1;
      return size + leading_space(here.substr(size));
    }
    if (!here.starts_with(end)) return std::nullopt;
    return end.size() + (newline && trims_ && here.substr(end.size()).starts_with('\n') ? 1 : 0);
  }

  void comment() {
    for (auto at = at_; at < source_.size(); ++at)
      if (const auto size = tag_end(at, "#}", true, true)) return advance(at + *size - at_);
    fail("a comment has no end; close it with #}");
  }

  void print() {
    add(TokenKind::print_begin);
    inside("}}", false);
    add(TokenKind::print_end);
    advance(*tag_end(at_, "}}", false, false));
  }

  void block() {
    add(TokenKind::block_begin);
    inside("%}", true);
    add(TokenKind::block_end);
    advance(*tag_end(at_, "%}", true, true));
  }

  std::size_t spaces_at(std::size_t at) const {
    return at + leading_space(std::string_view(source_).substr(std::min(at, source_.size())));
  }

  // Where the word of a tag ends that begins at a place; nothing where another word stands there.
  std::optional<std::size_t> after_word(std::size_t at, std::string_view word) const {
    at = spaces_at(at);
    if (!std::string_view(source_).substr(at).starts_with(word)) return std::nullopt;
    return spaces_at(at + word.size());
  }

  // {% raw %}: what stands up to {% endraw %} is data.  False where the block is another one.
  bool raw() {
    const auto word = after_word(at_, "raw");
    const auto begin_size = word ? tag_end(*word, "%}", false, false) : std::nullopt;
    if (!begin_size) return false;
    advance(*word + *begin_size - at_);
    for (auto at = at_; at < source_.size(); ++at) {
      if (!std::string_view(source_).substr(at).starts_with("{%")) continue;
      const char next = at + 2 < source_.size() ? source_[at + 2] : ' ';
      const bool has_sign = next == '-' || next == '+';
      const auto end = after_word(at + 2 + (has_sign ? 1 : 0), "endraw");
      const auto size = end ? tag_end(*end, "%}", true, true) : std::nullopt;
      if (!size) continue;
      data(stripped_before(std::string_view(source_).substr(at_, at - at_), has_sign ? next : ' ', true));
      advance(*end + *size - at_);
      return true;
    }
    fail("raw has no end; close it with {% endraw %}");
  }

  // Tokens of an expression up to the tag's end, which does not count within brackets.
  void inside(std::string_view end, bool plus) {
    brackets_.clear();
    for (;;) {
      advance(leading_space(rest()));
      if (at_ == source_.size()) fail(std::string("a tag has no end; close it with ") + std::string(end));
      if (brackets_.empty() && tag_end(at_, end, plus, false)) return;
      const char c = source_[at_];
      if (is_digit(c))
        number();
      else if (is_name_start(c))
        name();
      else if (c == '\'' || c == '"')
        text();
      else
        sign();
    }
  }

  void name() {
    std::size_t size = 1;
    while (size < rest().size() && (is_name_start(rest()[size]) || is_digit(rest()[size]))) ++size;
    if (size < rest().size() && static_cast<unsigned char>(rest()[size]) >= 0x80)
      fail("a name has characters beyond ASCII, which Retort lacks");
    add(TokenKind::name, std::string(rest().substr(0, size)));
    advance(size);
  }

  // Bytes of digits with single underscores between them.
  std::size_t digits_at(std::size_t at) const {
    std::size_t end = at;
    while (end < source_.size() &&
           (is_digit(source_[end]) || (source_[end] == '_' && end > at && end + 1 < source_.size() &&
                                       source_[end - 1] != '_' && is_digit(source_[end + 1]))))
      ++end;
    return end - at;
  }

  void number() {
    const auto digits = digits_at(at_);
    auto end = at_ + digits;
    bool is_real = false;
    const auto fraction = end < source_.size() && source_[end] == '.' ? digits_at(end + 1) : 0;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (fraction > 0 && !after_dot) end += 1 + fraction, is_real = true;
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      auto power = end + 1;
      if (power < source_.size() && (source_[power] == '+' || source_[power] == '-')) ++power;
      if (const auto size = digits_at(power)) end = power + size, is_real = true;
    }
    std::string plain = source_.substr(at_, end - at_);
    std::erase(plain, '_');
    const bool zeros = plain.find_first_not_of('0') == plain.npos;
    const bool other_base = plain == "0" && end < source_.size() && is_name_start(source_[end]);
    if (!is_real && (other_base || (plain.size() > 1 && plain[0] == '0' && !zeros)))
      fail("a number begins with a zero, which Retort lacks; write it in decimal digits");
    store_number(add(is_real ? TokenKind::real : TokenKind::whole), plain);
    advance(end - at_);
  }

  void store_number(Token& token, const std::string& plain) const {
    const char* last = plain.data() + plain.size();
    const auto result = token.kind == TokenKind::real ? std::from_chars(plain.data(), last, token.real)
                                                      : std::from_chars(plain.data(), last, token.whole);
    if (result.ec != std::errc()) fail("the number " + io::quote(plain) + " has more than 64 bits");
  }

  void text() {
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a text in quotes has no end");
    const auto written = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
    add(TokenKind::text, unescaped(written));
    advance(end + 1 - at_);
  }

  std::string unescaped(std::string_view written) const {
    std::string out;
    while (!written.empty()) {
      const auto size = written.find('\\');
      out += written.substr(0, size);
      if (size == written.npos) break;
      written.remove_prefix(size + 1);
      written.remove_prefix(escape(out, written));
    }
    return out;
  }

  // Adds what an escape stands for; returns its bytes behind the backslash.
  std::size_t escape(std::string& out, std::string_view rest) const {
    static constexpr std::string_view kNames = "\\'\"abfnrtv\n", kMeant = "\\'\"\a\b\f\n\r\t\v";
    const char c = rest.front();
    if (const auto at = kNames.find(c); at != kNames.npos) {
      if (at < kMeant.size()) out += kMeant[at];  // a line's end vanishes
      return 1;
    }
    if (c >= '0' && c <= '7') {
      std::size_t size = 1;
      while (size < 3 && size < rest.size() && rest[size] >= '0' && rest[size] <= '7') ++size;
      return append_code(out, rest.substr(0, size), 8);
    }
    if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      if (rest.size() < size + 1) fail("an escape of a text is cut short");
      return 1 + append_code(out, rest.substr(1, size), 16);
    }
    if (static_cast<unsigned char>(c) >= 0x80)
      fail("a text has a backslash before a character beyond ASCII, which Retort lacks");
    if (c == 'N') fail("a text names a character by \\N, which Retort lacks");
    out += '\\';  // no escape; the character itself is read next
    return 0;
  }

  std::size_t append_code(std::string& out, std::string_view digits, int base) const {
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (!whole || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      fail("an escape of a text, " + io::quote(digits) + ", is no character");
    text::append_utf8(out, code);
    return digits.size();
  }

  void sign() {
    static constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
    std::string sign(rest().substr(0, 1));
    for (const auto two : kDouble)
      if (rest().starts_with(two)) sign = two;
    if (sign.size() == 1 && std::string_view("+-/*%~[](){}><=.:|,;").find(sign) == std::string_view::npos)
      fail("unexpected character " + io::quote(rest().substr(0, text::read_character(rest().data()).size)));
    balance(sign.front());
    add(TokenKind::sign, sign);
    advance(sign.size());
  }

  void balance(char c) {
    static constexpr std::string_view kOpen = "([{", kClosed = ")]}";
    if (const auto at = kOpen.find(c); at != kOpen.npos) brackets_ += kClosed[at];
    if (kClosed.find(c) == kClosed.npos) return;
    if (brackets_.empty() || brackets_.back() != c) fail(std::string("unexpected ") + c);
    brackets_.pop_back();
  }

  const bool trims_;  ///< trim_blocks and lstrip_blocks
  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string brackets_;  ///< what closes those that are open
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, Dialect dialect) {
  return Lexer(source, dialect).run();
}

}  // namespace retort::chat
