#include "retort/text/added_tokens.h"

#include <algorithm>

#include "retort/text/unicode.h"

namespace retort::text {
namespace {

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

bool in_class(const char* at, CharClass mask) {
  return (character_classes()[read_character(at).code] & mask) != 0;
}

bool touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  const char* data = text.data();
  if (begin > 0 && in_class(previous_character(data + begin), kWord)) return true;
  return end < text.size() && in_class(data + end, kWord);
}

std::size_t spaces_before(std::string_view text, std::size_t at, std::size_t floor) {
  while (at > floor) {
    const char* before = previous_character(text.data() + at);
    if (!in_class(before, kSpace)) break;
    at = static_cast<std::size_t>(before - text.data());
  }
  return std::max(at, floor);
}

std::size_t spaces_after(std::string_view text, std::size_t at) {
  while (at < text.size() && in_class(text.data() + at, kSpace)) at += read_character(text.data() + at).size;
  return at;
}

}  // namespace

void AddedTokenFinder::add(std::string_view pattern, const AddedToken& token) {
  std::uint32_t node = 0;
  for (const char byte : pattern) {
    const auto fresh = static_cast<std::uint32_t>(ends_.size());
    const auto [child, created] = children_.try_emplace(edge(node, byte), fresh);
    if (created) ends_.push_back(nullptr);
    node = child->second;
  }
  ends_[node] = &token;
  starts_[static_cast<unsigned char>(pattern.front())] = true;
}

AddedTokenFinder::Match AddedTokenFinder::longest_at(std::string_view text, std::size_t begin) const {
  Match match{begin, begin, nullptr};
  std::uint32_t node = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const auto child = children_.find(edge(node, text[at]));
    if (child == children_.end()) break;
    node = child->second;
    if (ends_[node] != nullptr) match = {begin, at + 1, ends_[node]};
  }
  return match;
}

AddedTokenFinder::Match AddedTokenFinder::next_match(std::string_view text, std::size_t from) const {
  for (; from < text.size(); ++from) {
    if (!starts_[static_cast<unsigned char>(text[from])]) continue;
    const Match match = longest_at(text, from);
    if (match.token != nullptr) return match;
  }
  return {text.size(), text.size(), nullptr};
}

std::vector<TextPart> AddedTokenFinder::cut(std::string_view text) const {
  std::vector<TextPart> parts;
  const auto give = [&](std::size_t begin, std::size_t end, const AddedToken* token) {
    if (begin < end) parts.push_back({text.substr(begin, end - begin), token});
  };
  if (children_.empty()) {
    give(0, text.size(), nullptr);
    return parts;
  }
  std::size_t done = 0;     // everything before is in `parts`
  std::size_t run_end = 0;  // end of the last run of white space that rstrip walked through
  for (Match match = next_match(text, 0); match.token != nullptr; match = next_match(text, match.end)) {
    const AddedToken& token = *match.token;
    if (token.single_word && touches_word(text, match.begin, match.end)) continue;
    const std::size_t begin =
        token.lstrip ? std::max(spaces_before(text, match.begin, done), done) : match.begin;
    std::size_t end = match.end;
    if (token.rstrip) {
      if (run_end < end) run_end = spaces_after(text, end);
      // Inside a run that was walked before, the run's end is known; this keeps long runs linear.
      end = std::max(end, run_end);
    }
    give(done, begin, nullptr);
    give(begin, end, &token);
    done = end;
  }
  give(done, text.size(), nullptr);
  return parts;
}

}  // namespace retort::text
