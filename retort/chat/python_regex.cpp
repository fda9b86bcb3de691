#include "retort/chat/python_regex.h"

#include <algorithm>
#include <array>

#include "retort/chat/code_points.h"
#include "retort/chat/python_regex_program.h"
#include "retort/text/unicode.h"

namespace retort::chat {
namespace {

using Kind = RegexNode::Kind;
constexpr std::size_t kMostTrail = std::size_t{1} << 22;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// The zeros of the decimal digits of Unicode 14; nine more follow each.
bool is_decimal_digit(char32_t code) {
  static constexpr std::array<char32_t, 66> kZeros{
      0x30,    0x660,   0x6f0,   0x7c0,   0x966,   0x9e6,   0xa66,   0xae6,   0xb66,   0xbe6,   0xc66,
      0xce6,   0xd66,   0xde6,   0xe50,   0xed0,   0xf20,   0x1040,  0x1090,  0x17e0,  0x1810,  0x1946,
      0x19d0,  0x1a80,  0x1a90,  0x1b50,  0x1bb0,  0x1c40,  0x1c50,  0xa620,  0xa8d0,  0xa900,  0xa9d0,
      0xa9f0,  0xaa50,  0xabf0,  0xff10,  0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0,
      0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60,
      0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0};
  const auto after = std::upper_bound(kZeros.begin(), kZeros.end(), code);
  return after != kZeros.begin() && code < *(after - 1) + 10;
}

bool is_word(char32_t code) {
  return code == '_' || (text::character_classes()[code] & (text::kLetter | text::kNumber)) != 0;
}

bool is_in(CharacterSet::Class one, char32_t code) {
  return one == CharacterSet::Class::digit   ? is_decimal_digit(code)
         : one == CharacterSet::Class::space ? is_space(code)
                                             : is_word(code);
}

bool has(const CharacterSet& set, char32_t code) {
  for (const auto& [first, last] : set.ranges)
    if (code >= first && code <= last) return true;
  return std::any_of(set.classes.begin(), set.classes.end(),
                     [&](const auto& one) { return is_in(one.first, code) != one.second; });
}

char32_t upper_of(char32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 32 : code;
  std::string one;
  text::append_utf8(one, code);
  const std::string upper = to_upper(one);
  const auto first = text::read_character(upper.data());
  return first.size == upper.size() ? first.code : code;
}

bool matches(const CharacterSet& set, char32_t code) {
  const bool found =
      has(set, code) || (set.ignores_case && (has(set, lower_of(code)) || has(set, upper_of(code))));
  return found != set.negated;
}

class Matcher {
 public:
  Matcher(const std::vector<RegexInstruction>& program, std::size_t num_slots, std::string_view text,
          std::int64_t most_steps)
      : program_(program), text_(text), slots_(num_slots, kNowhere), steps_left_(most_steps) {}

  // Matches at a place; `moves`: an empty match does not count.
  bool match(std::size_t at, bool moves) {
    std::fill(slots_.begin(), slots_.end(), kNowhere);
    trail_.clear();
    moves_from_ = moves ? at : kNowhere;
    slots_[0] = at;
    if (!run(0, at)) return false;
    slots_[1] = end_;
    return true;
  }
  const std::vector<std::size_t>& slots() const { return slots_; }

 private:
  // What is undone: a branch that is tried, or a slot that gets its value back.
  struct Undo {
    std::size_t instruction, place, slot;
  };

  void remember(Undo undo) {
    if (trail_.size() >= kMostTrail) throw RegexFault{"takes more memory than Retort gives it"};
    trail_.push_back(undo);
  }
  void set_slot(std::size_t slot, std::size_t place) {
    remember({kNowhere, slots_[slot], slot});
    slots_[slot] = place;
  }

  // Goes back to the last branch above `base`.
  bool backtrack(std::size_t base, std::size_t& pc, std::size_t& at) {
    while (trail_.size() > base) {
      const Undo undo = trail_.back();
      trail_.pop_back();
      if (undo.instruction == kNowhere) {
        slots_[undo.slot] = undo.place;
        continue;
      }
      pc = undo.instruction;
      at = undo.place;
      return true;
    }
    return false;
  }

  // Runs from an instruction to its `accept`.
  bool run(std::size_t pc, std::size_t at) {
    const std::size_t base = trail_.size();
    for (;;) {
      if (--steps_left_ < 0) throw RegexFault{"takes too many steps"};
      const RegexInstruction& now = program_[pc];
      bool goes_on = true;
      switch (now.op) {
        case RegexInstruction::Op::accept:
          goes_on = pc + 1 != program_.size() || at != moves_from_;
          if (goes_on) {
            end_ = at;
            return true;
          }
          break;
        case RegexInstruction::Op::jump:
          pc = now.first;
          continue;
        case RegexInstruction::Op::split:
          remember({now.second, at, 0});
          pc = now.first;
          continue;
        case RegexInstruction::Op::keep:
          set_slot(now.first, at);
          break;
        case RegexInstruction::Op::forget:
          set_slot(now.first, kNowhere);
          break;
        case RegexInstruction::Op::loop:
          pc = loop(now, at);
          continue;
        case RegexInstruction::Op::look:
          goes_on = look(now, pc, at);
          if (goes_on) pc = now.first;
          break;
        case RegexInstruction::Op::test:
          goes_on = test(*now.node, at);
          break;
      }
      if (goes_on)
        ++pc;
      else if (!backtrack(base, pc, at))
        return false;
    }
  }

  std::size_t loop(const RegexInstruction& now, std::size_t at) {
    if (slots_[now.slot] == at) return now.second;
    const bool lazy = now.node->lazy;
    remember({lazy ? now.first : now.second, at, 0});
    return lazy ? now.second : now.first;
  }

  // What is seen is kept where it is positive; its branches are not.
  bool look(const RegexInstruction& now, std::size_t pc, std::size_t at) {
    const RegexNode& node = *now.node;
    std::size_t from = at;
    for (std::int64_t i = 0; node.behind && i < node.width; ++i) {
      if (from == 0) return node.negated;
      from = static_cast<std::size_t>(text::previous_character(text_.data() + from) - text_.data());
    }
    const std::size_t base = trail_.size();
    const bool found = run(pc + 1, from);
    if (found && node.negated) {
      std::size_t ignored = 0;
      while (backtrack(base, ignored, ignored)) continue;
    }
    const auto begin = trail_.begin() + static_cast<std::ptrdiff_t>(base);
    trail_.erase(
        std::remove_if(begin, trail_.end(), [](const Undo& undo) { return undo.instruction != kNowhere; }),
        trail_.end());
    return found != node.negated;
  }

  char32_t before(std::size_t at) const {
    return text::read_character(text::previous_character(text_.data() + at)).code;
  }
  char32_t after(std::size_t at) const { return text::read_character(text_.data() + at).code; }

  bool at_border(std::size_t at) const {
    const bool left = at > 0 && is_word(before(at)), right = at < text_.size() && is_word(after(at));
    return left != right;
  }

  // Whether a node is there; `at` moves behind it.
  bool test(const RegexNode& node, std::size_t& at) {
    switch (node.kind) {
      case Kind::text_begin:
        return at == 0;
      case Kind::line_begin:
        return at == 0 || text_[at - 1] == '\n';
      case Kind::text_end:
        return at == text_.size();
      case Kind::text_end_or_newline:
        return at == text_.size() || (at + 1 == text_.size() && text_[at] == '\n');
      case Kind::line_end:
        return at == text_.size() || text_[at] == '\n';
      case Kind::border:
        return at_border(at);
      case Kind::no_border:
        return !text_.empty() && !at_border(at);
      case Kind::reference:
        return reference(node, at);
      default:
        return character(node, at);
    }
  }

  bool character(const RegexNode& node, std::size_t& at) const {
    if (at == text_.size()) return false;
    const auto [code, size] = text::read_character(text_.data() + at);
    bool fits = true;
    if (node.kind == Kind::character)
      fits = (node.ignores_case ? lower_of(code) : code) == node.code;
    else if (node.kind == Kind::any)
      fits = code != '\n';
    else if (node.kind == Kind::set)
      fits = matches(node.set, code);
    if (fits) at += size;
    return fits;
  }

  bool reference(const RegexNode& node, std::size_t& at) {
    const auto begin = slots_[2 * node.group], end = slots_[2 * node.group + 1];
    if (begin == kNowhere || end == kNowhere) return false;
    for (auto there = begin; there < end;) {
      if (at == text_.size()) return false;
      const auto one = text::read_character(text_.data() + there),
                 other = text::read_character(text_.data() + at);
      const bool equal =
          node.ignores_case ? lower_of(one.code) == lower_of(other.code) : one.code == other.code;
      if (!equal) return false;
      there += one.size;
      at += other.size;
      --steps_left_;
    }
    return true;
  }

  const std::vector<RegexInstruction>& program_;
  std::string_view text_;
  std::vector<std::size_t> slots_;
  std::vector<Undo> trail_;
  std::int64_t steps_left_;
  std::size_t moves_from_ = kNowhere, end_ = 0;
};

}  // namespace

PythonRegex PythonRegex::parse(std::string_view pattern) {
  auto program = std::make_shared<Program>();
  program->pattern = pattern;
  program->syntax = parse_regex(pattern);
  compile_regex(program->instructions, program->num_slots, program->syntax);
  return PythonRegex(std::move(program));
}

const std::string& PythonRegex::pattern() const {
  return program_->pattern;
}
std::size_t PythonRegex::num_groups() const {
  return program_->syntax.num_groups;
}

std::vector<PythonRegex::Match> PythonRegex::find_all(std::string_view text, std::int64_t most_steps) const {
  Matcher matcher(program_->instructions, program_->num_slots, text, most_steps);
  std::vector<Match> found;
  bool moves = false;
  for (std::size_t at = 0; at <= text.size();) {
    if (!matcher.match(at, moves)) {
      at += at < text.size() ? text::read_character(text.data() + at).size : 1;
      moves = false;
      continue;
    }
    Match& match = found.emplace_back();
    const auto& slots = matcher.slots();
    for (std::size_t group = 0; group <= num_groups(); ++group) {
      const auto begin = slots[2 * group], end = slots[2 * group + 1];
      const bool has_part = begin != kNowhere && end != kNowhere;
      match.push_back(has_part ? std::optional(std::pair(begin, end)) : std::nullopt);
    }
    moves = slots[1] == at;
    at = slots[1];
  }
  return found;
}

}  // namespace retort::chat
