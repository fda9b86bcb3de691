// A parser by recursive descent; rules and limits are those of Python's re/_parser.py.
#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "retort/base/error.h"
#include "retort/base/utf8.h"
#include "retort/chat/code_points.h"
#include "retort/chat/python_regex_syntax.h"
#include "retort/io/quote.h"
#include "retort/text/unicode.h"

namespace retort::chat {
namespace {

using Kind = RegexNode::Kind;
constexpr int kDeepestGroup = 50;
constexpr std::size_t kLongestPattern = 10'000;
constexpr std::int64_t kMostRepeats = 1000;
constexpr std::int64_t kMostWidth = 1'000'000;

struct Flags {
  bool ignores_case = false, multi_line = false, dot_all = false;
};

[[noreturn]] void fail(const std::string& reason) {
  throw RegexFault{reason};
}

RegexNodePtr node_of(Kind kind) {
  auto node = std::make_unique<RegexNode>();
  node->kind = kind;
  return node;
}

bool is_ascii_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_ascii_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

// How many characters a node takes, where that is always the same.
std::optional<std::int64_t> width_of(const RegexNode& node) {
  switch (node.kind) {
    case Kind::character:
    case Kind::set:
    case Kind::any:
    case Kind::all:
      return 1;
    case Kind::reference:
      return std::nullopt;
    case Kind::group:
      return width_of(*node.children[0]);
    case Kind::sequence: {
      std::int64_t sum = 0;
      for (const auto& child : node.children) {
        const auto width = width_of(*child);
        if (!width) return std::nullopt;
        sum += *width;
      }
      return sum;
    }
    case Kind::alternation: {
      const auto first = width_of(*node.children[0]);
      for (const auto& child : node.children)
        if (width_of(*child) != first) return std::nullopt;
      return first;
    }
    case Kind::repeat: {
      const auto width = width_of(*node.children[0]);
      const bool same = width && *width <= kMostWidth && node.least == node.most;
      return same ? std::optional(*width * node.least) : std::nullopt;
    }
    default:
      return 0;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) {
    for_each_character(
        pattern, [&](std::string_view one) { codes_.push_back(text::read_character(one.data()).code); });
  }

  RegexSyntax run() {
    global_flags();
    syntax_.root = alternation();
    if (!at_end()) fail("has a \")\" without a \"(\"");
    return std::move(syntax_);
  }

 private:
  bool at_end() const { return at_ == codes_.size(); }
  char32_t now() const { return at_ < codes_.size() ? codes_[at_] : 0; }
  bool skip(char32_t code) {
    if (at_end() || codes_[at_] != code) return false;
    ++at_;
    return true;
  }
  bool skip(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (at_ + i >= codes_.size() || codes_[at_ + i] != static_cast<unsigned char>(text[i])) return false;
    at_ += text.size();
    return true;
  }
  char32_t take() {
    if (at_end()) fail("ends too early");
    return codes_[at_++];
  }

  static void set_flag(Flags& flags, char32_t letter, bool on) {
    if (letter == 'i')
      flags.ignores_case = on;
    else if (letter == 'm')
      flags.multi_line = on;
    else if (letter == 's')
      flags.dot_all = on;
    else if (letter != 'u')
      fail("has a flag that Retort lacks");
  }

  // (?ims) at the beginning.
  void global_flags() {
    while (codes_.size() > at_ + 2 && codes_[at_] == '(' && codes_[at_ + 1] == '?' &&
           is_ascii_letter(codes_[at_ + 2]) && codes_[at_ + 2] != 'P') {
      auto end = at_ + 2;
      while (end < codes_.size() && is_ascii_letter(codes_[end])) ++end;
      if (end == codes_.size() || codes_[end] != ')') return;
      for (auto i = at_ + 2; i < end; ++i) set_flag(flags_, codes_[i], true);
      at_ = end + 1;
    }
  }

  RegexNodePtr alternation() {
    auto first = sequence();
    if (now() != '|' || at_end()) return first;
    auto node = node_of(Kind::alternation);
    node->children.push_back(std::move(first));
    while (skip(U'|')) node->children.push_back(sequence());
    return node;
  }

  RegexNodePtr sequence() {
    auto node = node_of(Kind::sequence);
    while (!at_end() && now() != '|' && now() != ')')
      if (auto item = repeated(atom())) node->children.push_back(std::move(item));
    return node;
  }

  // Least and most repeats of what stands before; nothing where no quantifier follows.
  std::optional<std::pair<std::int64_t, std::int64_t>> quantifier() {
    if (skip(U'*')) return std::pair{std::int64_t{0}, RegexNode::kNoBound};
    if (skip(U'+')) return std::pair{std::int64_t{1}, RegexNode::kNoBound};
    if (skip(U'?')) return std::pair{std::int64_t{0}, std::int64_t{1}};
    if (at_end() || now() != '{') return std::nullopt;
    const auto before = at_++;
    const auto least = number();
    const bool comma = skip(U',');
    const auto most = comma ? number() : least;
    if (!skip(U'}') || (!least && !comma)) {
      at_ = before;
      return std::nullopt;  // "{" as it stands
    }
    if (least && most && *most < *least) fail("repeats at least more often than at most");
    return std::pair{least.value_or(0), most.value_or(RegexNode::kNoBound)};
  }

  std::optional<std::int64_t> number() {
    std::optional<std::int64_t> value;
    while (!at_end() && is_ascii_digit(now())) {
      value = value.value_or(0) * 10 + static_cast<std::int64_t>(take() - '0');
      if (*value > kMostRepeats) fail("repeats more than 1000 times, which Retort lacks");
    }
    return value;
  }

  RegexNodePtr repeated(RegexNodePtr item) {
    const auto bounds = quantifier();
    if (!bounds) return item;
    const bool repeats = item != nullptr && item->kind != Kind::text_begin && item->kind != Kind::line_begin;
    if (!repeats) fail("has nothing to repeat");
    auto node = node_of(Kind::repeat);
    std::tie(node->least, node->most) = *bounds;
    node->lazy = skip(U'?');
    if (!node->lazy && !at_end() && now() == '+') fail("is possessive, which Retort lacks");
    node->children.push_back(std::move(item));
    const auto again = at_;
    if (quantifier()) fail("repeats a repeat; put it in brackets");
    at_ = again;
    return node;
  }

  RegexNodePtr literal(char32_t code) const {
    auto node = node_of(Kind::character);
    node->ignores_case = flags_.ignores_case;
    node->code = flags_.ignores_case ? lower_of(code) : code;
    return node;
  }

  RegexNodePtr atom() {
    const char32_t code = take();
    switch (code) {
      case '.':
        return node_of(flags_.dot_all ? Kind::all : Kind::any);
      case '^':
        return node_of(flags_.multi_line ? Kind::line_begin : Kind::text_begin);
      case '$':
        return node_of(flags_.multi_line ? Kind::line_end : Kind::text_end_or_newline);
      case '(':
        return group();
      case '[':
        return set();
      case '\\':
        return escape();
      case '*':
      case '+':
      case '?':
        fail("has nothing to repeat");
      default:
        return literal(code);
    }
  }

  RegexNodePtr inside(RegexNodePtr node) {
    if (++depth_ > kDeepestGroup) fail("has groups more than 50 deep, which Retort lacks");
    node->children.push_back(alternation());
    --depth_;
    if (!skip(U')')) fail("has a \"(\" without a \")\"");
    return node;
  }

  RegexNodePtr kept_group(const std::string& name) {
    auto node = node_of(Kind::group);
    node->group = ++syntax_.num_groups;
    if (!name.empty()) {
      if (group_named(name)) fail("gives two groups the name " + io::quote(name));
      syntax_.names.emplace_back(name, node->group);
    }
    open_.push_back(node->group);
    const auto kept = node->group;
    auto whole = inside(std::move(node));
    std::erase(open_, kept);
    return whole;
  }

  RegexNodePtr look(bool behind, bool negated) {
    auto node = node_of(Kind::look);
    node->behind = behind;
    node->negated = negated;
    node = inside(std::move(node));
    if (!behind) return node;
    const auto width = width_of(*node->children[0]);
    if (!width) fail("looks behind for texts of several lengths, which Python refuses");
    node->width = *width;
    return node;
  }

  RegexNodePtr group() {
    if (!skip(U'?')) return kept_group("");
    if (skip(U':')) return inside(node_of(Kind::group));
    if (skip(U'=')) return look(false, false);
    if (skip(U'!')) return look(false, true);
    if (skip("<=")) return look(true, false);
    if (skip("<!")) return look(true, true);
    if (skip("P<")) return kept_group(name_up_to('>'));
    if (skip("P=")) return reference(name_up_to(')'));
    if (skip(U'#')) {
      while (take() != ')') continue;
      return nullptr;
    }
    return flagged_group();
  }

  // (?i:...) and (?-i:...)
  RegexNodePtr flagged_group() {
    const Flags before = flags_;
    bool on = true;
    while (!skip(U':')) {
      const char32_t letter = take();
      if (letter == '-' && on)
        on = false;
      else if (is_ascii_letter(letter))
        set_flag(flags_, letter, on);
      else
        fail("has a group or a flag that Retort lacks");
    }
    auto node = inside(node_of(Kind::group));
    flags_ = before;
    return node;
  }

  std::string name_up_to(char32_t end) {
    std::string name;
    for (char32_t code = take(); code != end; code = take()) {
      const bool fits = is_ascii_letter(code) || code == '_' || (is_ascii_digit(code) && !name.empty());
      if (!fits) fail("has a group whose name is no name");
      name += static_cast<char>(code);
    }
    if (name.empty()) fail("has a group without a name");
    return name;
  }

  std::optional<std::size_t> group_named(const std::string& name) const {
    for (const auto& [known, number] : syntax_.names)
      if (known == name) return number;
    return std::nullopt;
  }

  RegexNodePtr reference(const std::string& name) {
    const auto number = group_named(name);
    if (!number) fail("refers to the group " + io::quote(name) + ", which it has not");
    return reference(*number);
  }
  RegexNodePtr reference(std::size_t number) {
    if (number > syntax_.num_groups || std::find(open_.begin(), open_.end(), number) != open_.end())
      fail(base::join("refers to group ", number, ", which does not stand before it"));
    auto node = node_of(Kind::reference);
    node->group = number;
    node->ignores_case = flags_.ignores_case;
    return node;
  }

  char32_t hexadecimal(int digits) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = take();
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!letter && !is_ascii_digit(c)) fail("has an escape that is no hexadecimal number");
      code = code * 16 + (is_ascii_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail("has an escape that is no character");
    return code;
  }

  char32_t octal(char32_t first, int most) {
    char32_t code = first - '0';
    for (int i = 1; i < most && !at_end() && now() >= '0' && now() <= '7'; ++i)
      code = code * 8 + (take() - '0');
    if (code > 0377) fail("has an octal escape above 0o377");
    return code;
  }

  // What an escape stands for that is the same within a set; nothing where it is not one of these.
  std::optional<char32_t> plain_escape(char32_t code) {
    static constexpr std::string_view kNames = "nrtfva", kMeant = "\n\r\t\f\v\a";
    if (code < 0x80)
      if (const auto at = kNames.find(static_cast<char>(code)); at != kNames.npos)
        return static_cast<unsigned char>(kMeant[at]);
    if (code == 'x') return hexadecimal(2);
    if (code == 'u') return hexadecimal(4);
    if (code == 'U') return hexadecimal(8);
    if (code == '0') return octal(code, 3);
    if (!is_ascii_letter(code) && !is_ascii_digit(code)) return code;
    return std::nullopt;
  }

  // \d and its kin: adds it to a set.
  static bool add_class(CharacterSet& set, char32_t code) {
    using Class = CharacterSet::Class;
    const char32_t small = code | 0x20;
    if (code > 0x7F || (small != 'd' && small != 's' && small != 'w')) return false;
    set.classes.emplace_back(small == 'd'   ? Class::digit
                             : small == 's' ? Class::space
                                            : Class::word,
                             code != small);
    return true;
  }

  RegexNodePtr escape() {
    const char32_t code = take();
    auto node = node_of(Kind::set);
    if (add_class(node->set, code)) return node;
    if (code == 'A') return node_of(Kind::text_begin);
    if (code == 'Z') return node_of(Kind::text_end);
    if (code == 'b') return node_of(Kind::border);
    if (code == 'B') return node_of(Kind::no_border);
    if (code >= '1' && code <= '9') return numbered(code);
    if (const auto plain = plain_escape(code)) return literal(*plain);
    fail("has an escape that Python does not know");
  }

  RegexNodePtr numbered(char32_t first) {
    std::size_t number = first - '0';
    if (!at_end() && is_ascii_digit(now())) {
      const bool octal_digits = first < '8' && now() < '8' && at_ + 1 < codes_.size() &&
                                codes_[at_ + 1] >= '0' && codes_[at_ + 1] < '8' && first < '4';
      if (octal_digits) return literal(octal(first, 3));
      number = number * 10 + (take() - '0');
    }
    return reference(number);
  }

  // A character of a set, or a class that was added.
  std::optional<char32_t> set_item(CharacterSet& set) {
    const char32_t code = take();
    if (code != '\\') return code;
    const char32_t escaped = take();
    if (add_class(set, escaped)) return std::nullopt;
    if (escaped == 'b') return U'\b';
    if (escaped >= '1' && escaped <= '7') return octal(escaped, 3);
    if (const auto plain = plain_escape(escaped)) return plain;
    fail("has an escape in a set that Python does not know");
  }

  RegexNodePtr set() {
    auto node = node_of(Kind::set);
    CharacterSet& set = node->set;
    set.ignores_case = flags_.ignores_case;
    set.negated = skip(U'^');
    for (bool first = true; first || now() != ']' || at_end(); first = false) {
      if (at_end()) fail("has a \"[\" without a \"]\"");
      const auto from = set_item(set);
      const bool is_range = at_ + 1 < codes_.size() && now() == '-' && codes_[at_ + 1] != ']';
      if (!is_range) {
        if (from) set.ranges.emplace_back(*from, *from);
        continue;
      }
      ++at_;
      const auto to = set_item(set);
      if (!from || !to || *to < *from) fail("has a set with a range that is none");
      set.ranges.emplace_back(*from, *to);
    }
    ++at_;
    return node;
  }

  std::vector<char32_t> codes_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Flags flags_;
  std::vector<std::size_t> open_;  ///< groups that have not ended
  RegexSyntax syntax_;
};

}  // namespace

char32_t lower_of(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  std::string text;
  text::append_utf8(text, code);
  const std::string lower = to_lower(text);
  const auto first = text::read_character(lower.data());
  return first.size == lower.size() ? first.code : code;
}

RegexSyntax parse_regex(std::string_view pattern) {
  if (pattern.size() > kLongestPattern) fail("has more than 10,000 bytes");
  if (!base::is_utf8(pattern)) fail("is not UTF-8");
  return Parser(pattern).run();
}

}  // namespace retort::chat
