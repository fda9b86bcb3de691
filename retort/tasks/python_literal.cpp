#include "retort/tasks/python_literal.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "retort/text/unicode.h"

namespace retort::tasks {
namespace {

using base::Json;
constexpr int kDeepest = 60;

[[noreturn]] void fail(const std::string& reason) {
  throw LiteralFault{reason};
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) >= 0x80);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json run() {
    while (at_ < text_.size() && (now() == ' ' || now() == '\t')) ++at_;  // as literal_eval strips
    Json value = items_without_brackets();
    brackets_ = 1;  // line ends may follow
    spaces();
    if (at_ != text_.size()) fail("something stands behind the literal");
    return value;
  }

 private:
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char take() {
    if (at_ == text_.size()) fail("it ends too early");
    return text_[at_++];
  }
  bool skip(char c) {
    if (now() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool skip(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void spaces() {
    while (at_ < text_.size()) {
      const char c = now();
      const bool blank = c == ' ' || c == '\t' || c == '\f' || (brackets_ > 0 && (c == '\n' || c == '\r'));
      if (!blank) return;
      ++at_;
    }
  }

  // One value, or several with commas between them, which are a tuple.
  Json items_without_brackets() {
    spaces();
    Json first = value();
    spaces();
    if (now() != ',') return first;
    Json tuple = Json::array({std::move(first)});
    while (skip(',')) {
      spaces();
      if (at_ == text_.size() || now() == '\n') break;
      tuple.push_back(value());
      spaces();
    }
    return tuple;
  }

  Json value() {
    if (++depth_ > kDeepest) fail("it is nested too deeply");
    Json read = plain_value();
    --depth_;
    return read;
  }

  Json plain_value() {
    const char c = now();
    if (c == '[') return list();
    if (c == '(') return tuple();
    if (c == '{') return map();
    if (c == '\'' || c == '"') return texts();
    if (c == '-' || c == '+') return signed_number();
    if (is_digit(c) || c == '.') return number(false);
    if (!is_letter(c)) fail("it is no literal of Python");
    const auto begin = at_;
    while (is_letter(now()) || is_digit(now())) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (word == "True") return true;
    if (word == "False") return false;
    if (word == "None") return nullptr;
    at_ = begin;
    if (starts_text()) return texts();
    fail("it has a name, which is no literal");
  }

  // Items up to a closing bracket; `comma` tells whether one followed the last.
  Json items(char end, bool& comma) {
    Json list = Json::array();
    comma = false;
    ++brackets_;
    for (;;) {
      spaces();
      if (skip(end)) break;
      if (!list.empty() && !comma) fail("a comma is missing");
      list.push_back(value());
      spaces();
      comma = skip(',');
    }
    --brackets_;
    return list;
  }

  Json list() {
    ++at_;
    bool comma = false;
    return items(']', comma);
  }

  Json tuple() {
    ++at_;
    bool comma = false;
    Json read = items(')', comma);
    return read.size() == 1 && !comma ? read[0] : read;
  }

  Json map() {
    ++at_;
    ++brackets_;
    Json map = Json::object();
    for (bool comma = true;;) {
      spaces();
      if (skip('}')) break;
      if (!comma) fail("a comma is missing");
      const Json key = value();
      spaces();
      if (!key.is_string() || !skip(':')) fail("it has a set, or a key that is no text, which Retort lacks");
      spaces();
      map[key.get<std::string>()] = value();
      spaces();
      comma = skip(',');
    }
    --brackets_;
    return map;
  }

  Json signed_number() {
    const bool negative = take() == '-';
    spaces();
    if (!is_digit(now()) && now() != '.') fail("a sign stands before what is no number");
    return number(negative);
  }

  std::string digits(bool (*fits)(char)) {
    std::string out;
    while (fits(now()) || (now() == '_' && !out.empty() && at_ + 1 < text_.size() && fits(text_[at_ + 1])))
      if (const char c = take(); c != '_') out += c;
    return out;
  }

  Json number(bool negative) {
    if (now() == '0' && at_ + 1 < text_.size())
      if (const char letter = static_cast<char>(text_[at_ + 1] | 0x20);
          letter == 'x' || letter == 'o' || letter == 'b')
        return in_base(negative, letter == 'x' ? 16 : letter == 'o' ? 8 : 2);
    std::string plain = digits(is_digit);
    bool real = false;
    if (now() == '.') {
      ++at_;
      const auto fraction = digits(is_digit);
      if (plain.empty() && fraction.empty()) fail("it is no literal of Python");
      plain = (plain.empty() ? "0" : plain) + "." + (fraction.empty() ? "0" : fraction);
      real = true;
    }
    if (now() == 'e' || now() == 'E') real |= exponent(plain);
    if (is_letter(now())) fail("a number runs into a name");
    return real ? real_of(plain, negative) : whole_of(plain, negative);
  }

  bool exponent(std::string& plain) {
    ++at_;
    plain += 'e';
    if (now() == '+' || now() == '-') plain += take();
    const auto power = digits(is_digit);
    if (power.empty()) fail("a number has an exponent without digits");
    plain += power;
    return true;
  }

  static Json real_of(const std::string& plain, bool negative) {
    double value = 0;
    const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    if (result.ec != std::errc()) fail("a number is beyond what Retort reads");
    return negative ? -value : value;
  }

  static Json whole_of(const std::string& plain, bool negative, int base = 10) {
    const bool zeros = plain.find_first_not_of('0') == plain.npos;
    if (base == 10 && plain.size() > 1 && plain[0] == '0' && !zeros) fail("a number begins with a zero");
    std::int64_t value = 0;
    const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value, base);
    if (result.ec != std::errc() || result.ptr != plain.data() + plain.size())
      fail("a number is beyond what Retort reads");
    return negative ? -value : value;
  }

  Json in_base(bool negative, int base) {
    at_ += 2;
    const auto plain = digits([](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); });
    if (is_letter(now())) fail("a number runs into a name");
    return whole_of(plain, negative, base);
  }

  // Whether quotes stand here, perhaps behind r or u.
  bool starts_text() const {
    auto at = at_;
    if (at < text_.size() && std::string_view("rRuU").find(text_[at]) != std::string_view::npos) ++at;
    return at < text_.size() && (text_[at] == '\'' || text_[at] == '"');
  }

  // Texts that follow each other are one.
  Json texts() {
    std::string out;
    while (starts_text()) {
      const bool raw = now() == 'r' || now() == 'R';
      if (now() != '\'' && now() != '"') ++at_;
      one_text(out, raw);
      spaces();
    }
    return out;
  }

  void one_text(std::string& out, bool raw) {
    const char quote = take();
    const std::string three(3, quote);
    --at_;
    const bool is_long = skip(three);
    if (!is_long) ++at_;
    for (;;) {
      if (is_long ? skip(three) : skip(quote)) return;
      const char c = take();
      if (c == '\n' && !is_long) fail("a text in quotes has no end");
      if (c != '\\')
        out += c;
      else if (raw)
        (out += c) += take();
      else
        escape(out);
    }
  }

  void escape(std::string& out) {
    static constexpr std::string_view kNames = "\\'\"abfnrtv", kMeant = "\\'\"\a\b\f\n\r\t\v";
    const char c = take();
    if (c == '\n') return;
    if (const auto at = kNames.find(c); at != kNames.npos) {
      out += kMeant[at];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      code(out, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else if (c >= '0' && c <= '7') {
      --at_;
      std::size_t size = 1;
      while (size < 3 && at_ + size < text_.size() && text_[at_ + size] >= '0' && text_[at_ + size] <= '7')
        ++size;
      code(out, size, 8);
    } else if (c == 'N') {
      fail("a text names a character by \\N, which Retort lacks");
    } else {
      (out += '\\') += c;
    }
  }

  void code(std::string& out, std::size_t size, int base) {
    const auto written = text_.substr(at_, size);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), number, base);
    const bool whole = error == std::errc() && written.size() == size && end == written.data() + size;
    if (!whole || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000))
      fail("an escape of a text is no character");
    text::append_utf8(out, number);
    at_ += size;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int brackets_ = 0;
};

}  // namespace

Json python_literal(std::string_view text) {
  if (text.find('\0') != text.npos) fail("it has a zero byte");
  return Reader(text).run();
}

}  // namespace retort::tasks
