#include "retort/text/split.h"

#include <algorithm>
#include <array>

#include "retort/text/normalizer.h"
#include "retort/text/unicode.h"

namespace retort::text {
namespace {

using At = const char*;

constexpr std::uint16_t kLetterOrNumber = kLetter | kNumber;
constexpr std::uint16_t kNotOther = kLetter | kNumber | kSpace;
// A limit that counting down never meets.
constexpr int kNoLimit = -1;

struct Row {
  std::string_view regex;
  KnownPattern pattern;
  std::string_view name;
  bool everything = true;  // matches every character
};

constexpr std::array kPatterns{
    Row{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", KnownPattern::gpt2,
        "gpt2"},
    Row{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::llama3, "llama3"},
    Row{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::qwen2, "qwen2"},
    Row{R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::tekken, "tekken"},
    Row{R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::o200k, "o200k"},
    Row{R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::deepseek3, "deepseek3", false},
    Row{R"(\s+$)", KnownPattern::spaces_at_end, "spaces_at_end", false},
};

const Row& row_of(KnownPattern pattern) {
  const auto found = std::find_if(kPatterns.begin(), kPatterns.end(),
                                  [&](const Row& row) { return row.pattern == pattern; });
  return *found;
}

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
      case KnownPattern::deepseek3:
        return match_deepseek3(at);
      case KnownPattern::spaces_at_end:
        return match_spaces_at_end(at);
    }
    return end_;
  }

  // The next place where a match may start, after none started at `at`.
  At after_unmatched(At at) const {
    const At stop = pattern_ == KnownPattern::spaces_at_end ? skip(at, kSpace) : at;
    return stop != at ? stop : next(at);
  }

 private:
  std::uint16_t class_at(At at) const { return classes_[read_character(at).code]; }
  bool in(At at, std::uint16_t mask) const { return at != end_ && (class_at(at) & mask) != 0; }
  bool outside(At at, std::uint16_t mask) const { return at != end_ && (class_at(at) & mask) == 0; }
  static At next(At at) { return at + read_character(at).size; }

  At skip(At at, std::uint16_t mask, int limit = kNoLimit) const {
    for (; limit != 0 && in(at, mask); --limit) at = next(at);
    return at;
  }
  At skip_outside(At at, std::uint16_t mask) const {
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
    for (const std::uint16_t mask : {kLetter, kNumber})
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
    return match_white(at);
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+
  At match_white(At at) const {
    At newline = nullptr;
    for (At space = at; in(space, kSpace); space = next(space))
      if (is_newline(*space)) newline = space;
    return newline != nullptr ? newline + 1 : match_spaces(at);
  }

  // DeepSeek 3: an ASCII sign with the letters after it, letters and marks with a character before them,
  // signs.
  At match_deepseek3(At at) const {
    const auto ascii_letter = [this](At place) {
      const char lower = place == end_ ? '\0' : static_cast<char>(*place | 0x20);
      return lower >= 'a' && lower <= 'z';
    };
    const auto code = static_cast<unsigned char>(*at);
    if (code < 0x80 && in(at, kPunctuation | kSymbol) && ascii_letter(at + 1)) {
      ++at;
      while (ascii_letter(at)) ++at;
      return at;
    }
    if (in(at, kLetter | kMark)) return skip(at, kLetter | kMark);
    if (!is_newline(*at) && outside(at, kLetter | kPunctuation | kSymbol) && in(next(at), kLetter | kMark))
      return skip(next(at), kLetter | kMark);
    const At sign = *at == ' ' ? at + 1 : at;
    if (in(sign, kPunctuation | kSymbol)) {
      At stop = skip(sign, kPunctuation | kSymbol);
      while (stop != end_ && is_newline(*stop)) ++stop;
      return stop;
    }
    return in(at, kSpace) ? match_white(at) : at;
  }

  // \s+$ : up to the end, or to the last line break that white space goes on to.
  At match_spaces_at_end(At at) const {
    const At stop = skip(at, kSpace);
    if (stop == end_ || stop == at) return stop;
    At newline = at;
    for (At space = next(at); space != stop; space = next(space))
      if (*space == '\n') newline = space;
    return newline;
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
  const std::uint16_t* classes_;
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
  // Line breaks may stand in an expression as they are.
  const std::string escaped = replace_all(replace_all(regex, "\r", R"(\r)"), "\n", R"(\n)");
  for (const Row& row : kPatterns)
    if (row.regex == escaped) return row.pattern;
  return std::nullopt;
}

std::string_view name_of(KnownPattern pattern) {
  return row_of(pattern).name;
}

bool matches_everything(KnownPattern pattern) {
  return row_of(pattern).everything;
}

namespace {

// `match` gives the end of the match at a place, or the place itself; `next` where another may start.
template <typename Match, typename Next>
void split_at_matches(std::string_view text, const PieceSink& sink, const Match& match, const Next& next) {
  const At end = text.data() + text.size();
  At start = text.data();
  for (At at = start; at != end;) {
    const At stop = match(at);
    if (stop == at) {
      at = next(at);
      continue;
    }
    give(between(start, at), sink);
    sink(between(at, stop));
    at = start = stop;
  }
  give(between(start, end), sink);
}

}  // namespace

void split_by(KnownPattern pattern, std::string_view text, const PieceSink& sink) {
  const Scanner scanner(pattern, text.data() + text.size());
  split_at_matches(
      text, sink, [&](At at) { return scanner.match(at); },
      [&](At at) { return scanner.after_unmatched(at); });
}

void split_by(const RunPattern& pattern, std::string_view text, const PieceSink& sink) {
  const At end = text.data() + text.size();
  split_at_matches(
      text, sink, [&](At at) { return pattern.match(at, end); },
      [](At at) { return at + read_character(at).size; });
}

void split_digits(std::string_view text, bool individual, const PieceSink& sink) {
  const std::uint16_t* classes = character_classes();
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
