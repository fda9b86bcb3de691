#include "retort/text/run_pattern.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "retort/text/unicode.h"

namespace retort::text {
namespace {

using Ranges = std::vector<std::pair<char32_t, char32_t>>;

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::uint16_t take_class(std::string_view& text) {
  if (take(text, R"(\p{L})")) return kLetter;
  if (take(text, R"(\p{N})")) return kNumber;
  return take(text, R"(\p{P})") ? kPunctuation : 0;
}

// Sorted, so that a character is found in few of them, and without overlaps.
Ranges sorted(Ranges ranges) {
  std::ranges::sort(ranges);
  Ranges apart;
  for (const auto& range : ranges)
    if (apart.empty() || apart.back().second < range.first)
      apart.push_back(range);
    else
      apart.back().second = std::max(apart.back().second, range.second);
  return apart;
}

// A character between brackets; nothing for one that means something else there.
std::optional<char32_t> take_character(std::string_view& text) {
  if (take(text, R"(\r)")) return U'\r';
  if (take(text, R"(\n)")) return U'\n';
  if (text.empty() || std::string_view("[]\\^&-").find(text.front()) != std::string_view::npos)
    return std::nullopt;
  const Character character = read_character(text.data());
  text.remove_prefix(character.size);
  return character.code;
}

std::optional<Ranges> take_brackets(std::string_view& text) {
  if (!take(text, "[")) return std::nullopt;
  Ranges ranges;
  while (!take(text, "]")) {
    const auto first = take_character(text);
    const auto last = first && take(text, "-") ? take_character(text) : first;
    if (!first || !last || *last < *first) return std::nullopt;
    ranges.emplace_back(*first, *last);
  }
  return ranges.empty() ? std::nullopt : std::optional(sorted(std::move(ranges)));
}

}  // namespace

std::optional<RunPattern> RunPattern::parse(std::string_view regex) {
  RunPattern pattern;
  pattern.space_before_ = take(regex, R"(\s?)");
  pattern.classes_ = take_class(regex);
  if (pattern.classes_ == 0) {
    auto ranges = take_brackets(regex);
    if (!ranges) return std::nullopt;
    pattern.ranges_ = *std::move(ranges);
  }
  if (regex.empty()) pattern.limit_ = 1;
  if (regex == "{1,3}") pattern.limit_ = 3;
  return regex.empty() || regex == "{1,3}" || regex == "+" ? std::optional(pattern) : std::nullopt;
}

bool RunPattern::contains(char32_t code) const {
  if (classes_ != 0) return (character_classes()[code] & classes_) != 0;
  const auto after = std::ranges::upper_bound(ranges_, code, {}, &std::pair<char32_t, char32_t>::first);
  return after != ranges_.begin() && code <= std::prev(after)->second;
}

const char* RunPattern::run(const char* at, const char* end) const {
  for (int left = limit_; left != 0 && at != end; --left) {
    const Character character = read_character(at);
    if (!contains(character.code)) break;
    at += character.size;
  }
  return at;
}

const char* RunPattern::match(const char* at, const char* end) const {
  const Character first = read_character(at);
  if (space_before_ && (character_classes()[first.code] & kSpace) != 0) {
    const char* after = at + first.size;
    const char* stop = run(after, end);
    if (stop != after) return stop;
  }
  return run(at, end);
}

}  // namespace retort::text
