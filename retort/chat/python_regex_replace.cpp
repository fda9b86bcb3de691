// re.sub of Python.
#include <algorithm>
#include <limits>

#include "retort/base/error.h"
#include "retort/chat/python_regex_program.h"

namespace retort::chat {
namespace {

// A replacement as texts and groups: a group's number, or kNoGroup and a text.
constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();
using Pieces = std::vector<std::pair<std::size_t, std::string>>;

class ReplacementReader {
 public:
  ReplacementReader(std::string_view text, const RegexSyntax& syntax) : rest_(text), syntax_(syntax) {}

  Pieces run() {
    while (!rest_.empty()) {
      const auto plain = rest_.substr(0, rest_.find('\\'));
      add(std::string(plain));
      rest_.remove_prefix(plain.size());
      if (!rest_.empty()) escape();
    }
    return std::move(pieces_);
  }

 private:
  void add(std::string text) { pieces_.emplace_back(kNoGroup, std::move(text)); }
  void add_group(std::size_t number) {
    if (number > syntax_.num_groups)
      throw RegexFault{base::join("has no group ", number, " for its replacement")};
    pieces_.emplace_back(number, "");
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void escape() {
    if (rest_.size() < 2) throw RegexFault{"has a replacement that ends in a backslash"};
    const char c = rest_[1];
    rest_.remove_prefix(2);
    static constexpr std::string_view kNames = "abfnrtv\\", kMeant = "\a\b\f\n\r\t\v\\";
    if (const auto at = kNames.find(c); at != kNames.npos) return add(std::string(1, kMeant[at]));
    if (c == 'g') return named();
    if (c == '0') throw RegexFault{"has an octal escape in its replacement, which Retort lacks"};
    if (is_digit(c)) return numbered(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter) throw RegexFault{"has an escape in its replacement that Python does not know"};
    add(std::string("\\") + c);
  }

  void numbered(char first) {
    auto number = static_cast<std::size_t>(first - '0');
    if (!rest_.empty() && is_digit(rest_[0])) {
      number = number * 10 + static_cast<std::size_t>(rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    add_group(number);
  }

  void named() {
    const auto end = rest_.find('>');
    if (!rest_.starts_with('<') || end == rest_.npos)
      throw RegexFault{"has a replacement with \\g but no name"};
    const std::string name(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    for (const auto& [known, number] : syntax_.names)
      if (known == name) return add_group(number);
    const bool digits = !name.empty() && name.size() < 4 && std::all_of(name.begin(), name.end(), is_digit);
    if (!digits) throw RegexFault{"has no group of the name that its replacement has"};
    add_group(std::stoul(name));
  }

  std::string_view rest_;
  const RegexSyntax& syntax_;
  Pieces pieces_;
};

}  // namespace

std::string PythonRegex::replaced(std::string_view text, std::string_view replacement,
                                  std::int64_t count) const {
  const Pieces pieces = ReplacementReader(replacement, program_->syntax).run();
  std::string out;
  std::size_t from = 0;
  std::int64_t done = 0;
  for (const Match& match : find_all(text)) {
    if (count > 0 && done++ == count) break;
    out += text.substr(from, match[0]->first - from);
    for (const auto& [group, plain] : pieces) {
      if (group == kNoGroup)
        out += plain;
      else if (match[group])
        out += text.substr(match[group]->first, match[group]->second - match[group]->first);
    }
    from = match[0]->second;
    if (out.size() > (std::size_t{1} << 26)) throw RegexFault{"makes more than 64 MiB of text"};
  }
  return out += text.substr(from);
}

}  // namespace retort::chat
