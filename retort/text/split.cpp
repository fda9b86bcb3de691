#include "retort/text/split.h"

#include <array>
#include <utility>

#include "retort/text/unicode.h"

namespace retort::text {
namespace {

using At = const char*;

constexpr std::uint8_t kLetterOrNumber = kLetter | kNumber;
constexpr std::uint8_t kNotOther = kLetter | kNumber | kSpace;
// A limit that counting down never meets.
constexpr int kNoLimit = -1;

constexpr std::array<std::pair<std::string_view, KnownPattern>, 5> kPatterns = {{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", KnownPattern::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     KnownPattern::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     KnownPattern::qwen2},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     KnownPattern::tekken},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     KnownPattern::o200k},
}};

bool is_newline(char c) {
  return c == '\r' || c == '\n';
}

// Finds where the match that starts at a place ends.  Every function takes time in proportion to what it
// consumes (or to what the next match will consume), whatever the text.
class Scanner {
 public:
  Scanner(KnownPattern pattern, At end) : pattern_(pattern), end_(end), classes_(character_classes()) {}

  At match(At at) const {
    switch (pattern_) {
      case KnownPattern::gpt2:
        return match_gpt2(at);
      case KnownPattern::llama3:
        return match_cl100k(at, 3);
      case KnownPattern::qwen2:
        return match_cl100k(at, 1);
      case KnownPattern::tekken:
        return match_cased(at, 1, false);
      case KnownPattern::o200k:
        return match_cased(at, 3, true);
    }
    return end_;
  }

 private:
  std::uint8_t class_at(At at) const { return classes_[read_character(at).code]; }
  bool in(At at, std::uint8_t mask) const { return at != end_ && (class_at(at) & mask) != 0; }
  bool outside(At at, std::uint8_t mask) const { return at != end_ && (class_at(at) & mask) == 0; }
  static At next(At at) { return at + read_character(at).size; }

  At skip(At at, std::uint8_t mask, int limit = kNoLimit) const {
    for (; limit != 0 && in(at, mask); --limit) at = next(at);
    return at;
  }
  At skip_outside(At at, std::uint8_t mask) const {
    while (outside(at, mask)) at = next(at);
    return at;
  }

  // \s+(?!\S)|\s+ : leaves the last white space to a word that follows.
  At match_spaces(At at) const {
    const At stop = skip(at, kSpace);
    if (stop == end_) return stop;
    const At last = previous_character(stop);
    return last > at ? last : stop;
  }

  // 's|'t|'re|'ve|'m|'ll|'d ; `at` is an apostrophe.  Returns `at` when there is none.
  At match_contraction(At at, bool any_case) const {
    const auto letter = [&](int i) -> char {
      if (end_ - at <= i) return '\0';
      const char c = at[i];
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const char first = letter(1), second = letter(2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    // The long s (U+017F) folds to s.
    if (any_case && first == '\xC5' && second == '\xBF') return at + 3;
    if (second == 'e' && (first == 'r' || first == 'v')) return at + 3;
    return first == 'l' && second == 'l' ? at + 3 : at;
  }

  At match_gpt2(At at) const {
    if (*at == '\'') {
      const At stop = match_contraction(at, false);
      if (stop != at) return stop;
    }
    const At word = *at == ' ' ? at + 1 : at;
    for (const std::uint8_t mask : {kLetter, kNumber})
      if (in(word, mask)) return skip(word, mask);
    if (outside(word, kNotOther)) return skip_outside(word, kNotOther);
    return match_spaces(at);
  }

  // The pattern of cl100k, Llama 3 and Qwen 2, which differ in the digits of a number.
  At match_cl100k(At at, int digits) const {
    if (*at == '\'') {
      const At stop = match_contraction(at, true);
      if (stop != at) return stop;
    }
    const At word = after_prefix(at);
    if (in(word, kLetter)) return skip(word, kLetter);
    if (in(at, kNumber)) return skip(at, kNumber, digits);
    return match_rest(at, false);
  }

  // [^\r\n\p{L}\p{N}]?
  At after_prefix(At at) const { return !is_newline(*at) && outside(at, kLetterOrNumber) ? next(at) : at; }

  //  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  At match_rest(At at, bool slashes) const {
    const At word = *at == ' ' ? at + 1 : at;
    if (outside(word, kNotOther)) {
      At stop = skip_outside(word, kNotOther);
      while (stop != end_ && (is_newline(*stop) || (slashes && *stop == '/'))) ++stop;
      return stop;
    }
    At newline = nullptr;
    for (At space = at; in(space, kSpace); space = next(space))
      if (is_newline(*space)) newline = space;
    return newline != nullptr ? newline + 1 : match_spaces(at);
  }

  // Words by the case of their letters: the pattern of tekken, and that of o200k, which adds contractions to
  // them.
  At match_cased(At at, int digits, bool contractions) const {
    const At word = after_prefix(at);
    for (const bool lower_needed : {true, false}) {
      for (const At start : {word, at}) {
        const At stop = lower_needed ? match_to_lower(start) : match_upper(start);
        if (stop != nullptr)
          return contractions && stop != end_ && *stop == '\'' ? match_contraction(stop, true) : stop;
        if (word == at) break;
      }
    }
    if (in(at, kNumber)) return skip(at, kNumber, digits);
    return match_rest(at, true);
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ : the classes overlap, so the first part may
  // have to give back characters until one that the second part takes comes last.
  At match_to_lower(At at) const {
    At last_lower_end = nullptr;
    for (; in(at, kUpperLike); at = next(at))
      if (class_at(at) & kLowerLike) last_lower_end = next(at);
    return in(at, kLowerLike) ? skip(at, kLowerLike) : last_lower_end;
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
  At match_upper(At at) const {
    return in(at, kUpperLike) ? skip(skip(at, kUpperLike), kLowerLike) : nullptr;
  }

  KnownPattern pattern_;
  At end_;
  const std::uint8_t* classes_;
};

std::string_view between(At from, At to) {
  return {from, static_cast<std::size_t>(to - from)};
}

void give(std::string_view piece, const PieceSink& sink) {
  if (!piece.empty()) sink(piece);
}

// Collects stretches that are either a separator or not, and joins them as the behaviour says.
class Joiner {
 public:
  Joiner(Separator behaviour, const PieceSink& sink) : behaviour_(behaviour), sink_(sink) {}

  void add(std::string_view stretch, bool separator) {
    if (stretch.empty()) return;
    switch (behaviour_) {
      case Separator::removed:
        if (!separator) sink_(stretch);
        return;
      case Separator::isolated:
        return sink_(stretch);
      case Separator::contiguous:
        join_if(separator == held_separator_, stretch);
        break;
      case Separator::merged_with_previous:
        join_if(separator && !held_separator_, stretch);
        break;
      case Separator::merged_with_next:
        join_if(!separator && held_separator_, stretch);
        break;
    }
    held_separator_ = separator;
  }
  void finish() {
    give(held_, sink_);
    held_ = {};
  }

 private:
  // Stretches are neighbours in one text.
  void join_if(bool join, std::string_view stretch) {
    if (join && !held_.empty()) {
      held_ = {held_.data(), held_.size() + stretch.size()};
      return;
    }
    finish();
    held_ = stretch;
  }

  Separator behaviour_;
  const PieceSink& sink_;
  std::string_view held_;
  bool held_separator_ = false;
};

}  // namespace

std::optional<KnownPattern> recognise(std::string_view regex) {
  for (const auto& [text, pattern] : kPatterns)
    if (text == regex) return pattern;
  return std::nullopt;
}

void split_by(KnownPattern pattern, std::string_view text, const PieceSink& sink) {
  const At end = text.data() + text.size();
  const Scanner scanner(pattern, end);
  for (At at = text.data(); at != end;) {
    const At stop = scanner.match(at);
    sink(between(at, stop));
    at = stop;
  }
}

void split_digits(std::string_view text, bool individual, const PieceSink& sink) {
  const std::uint8_t* classes = character_classes();
  Joiner joiner(individual ? Separator::isolated : Separator::contiguous, sink);
  const At end = text.data() + text.size();
  At start = text.data();
  for (At at = start; at != end;) {
    const Character character = read_character(at);
    if (classes[character.code] & kNumeric) {
      joiner.add(between(start, at), false);
      joiner.add(between(at, at + character.size), true);
      start = at + character.size;
    }
    at += character.size;
  }
  joiner.add(between(start, end), false);
  joiner.finish();
}

void split_at(std::string_view literal, Separator behaviour, std::string_view text, const PieceSink& sink) {
  Joiner joiner(behaviour, sink);
  std::size_t start = 0;
  for (std::size_t at = text.find(literal); at != text.npos; at = text.find(literal, start)) {
    joiner.add(text.substr(start, at - start), false);
    joiner.add(text.substr(at, literal.size()), true);
    start = at + literal.size();
  }
  joiner.add(text.substr(start), false);
  joiner.finish();
}

}  // namespace retort::text
