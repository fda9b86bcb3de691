#include "retort/chat/code_points.h"

#include <algorithm>

#include "retort/base/utf8.h"

namespace retort::chat {
namespace {

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

// Bytes at the beginning whose characters `belongs` takes.
template <typename Belongs>
std::size_t leading(std::string_view text, const Belongs& belongs) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto character = text::read_character(text.data() + at);
    if (!belongs(character.code)) break;
    at += character.size;
  }
  return at;
}

template <typename Belongs>
std::size_t trailing(std::string_view text, const Belongs& belongs) {
  const char* end = text.data() + text.size();
  while (end != text.data()) {
    const char* before = text::previous_character(end);
    if (!belongs(text::read_character(before).code)) break;
    end = before;
  }
  return static_cast<std::size_t>(text.data() + text.size() - end);
}

template <typename Belongs>
std::string_view stripped(std::string_view text, Ends ends, const Belongs& belongs) {
  if (ends != Ends::right) text.remove_prefix(leading(text, belongs));
  if (ends != Ends::left) text.remove_suffix(trailing(text, belongs));
  return text;
}

}  // namespace

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !base::is_utf8_continuation(c); }));
}

std::string_view character_range(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t at = 0, count = 0;
  const auto go_to = [&](std::size_t character) {
    for (; count < character; ++count) at += text::read_character(text.data() + at).size;
    return at;
  };
  const auto first = go_to(begin), last = go_to(std::max(begin, end));
  return text.substr(first, last - first);
}

bool is_space(char32_t code) {
  return is_line_end(code) || code == 0x09 || code == 0x1F || code == 0x20 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

std::size_t leading_space(std::string_view text) {
  return leading(text, is_space);
}
std::size_t trailing_space(std::string_view text) {
  return trailing(text, is_space);
}

std::string_view strip(std::string_view text, const std::string* characters, Ends ends) {
  if (characters == nullptr) return stripped(text, ends, is_space);
  std::u32string codes;
  for_each_character(*characters,
                     [&](std::string_view one) { codes += text::read_character(one.data()).code; });
  std::sort(codes.begin(), codes.end());
  return stripped(text, ends,
                  [&](char32_t code) { return std::binary_search(codes.begin(), codes.end(), code); });
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> parts;
  text.remove_prefix(leading_space(text));
  while (!text.empty()) {
    if (most >= 0 && std::ssize(parts) >= most) {
      parts.push_back(strip(text, nullptr, Ends::right));
      break;
    }
    const auto size = leading(text, [](char32_t code) { return !is_space(code); });
    parts.push_back(text.substr(0, size));
    text.remove_prefix(size);
    text.remove_prefix(leading_space(text));
  }
  return parts;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::int64_t most,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  while (most < 0 || std::ssize(parts) < most) {
    const auto at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    const auto end = at + separator.size();
    parts.push_back(from_right ? text.substr(end) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(end);
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto size = leading(text, [](char32_t code) { return !is_line_end(code); });
    std::size_t end = size;
    if (end < text.size()) {
      const bool two = text.substr(end, 2) == "\r\n";
      end += two ? 2 : text::read_character(text.data() + end).size;
    }
    lines.push_back(text.substr(0, keep_ends ? end : size));
    text.remove_prefix(end);
  }
  return lines;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by, std::int64_t most) {
  std::string out;
  std::int64_t count = 0;
  if (!old.empty()) {
    for (const auto part : split_at(text, old, most, false)) {
      if (count++ > 0) out += by;
      out += part;
    }
    return out;
  }
  for_each_character(text, [&](std::string_view one) {  // before each character and at the end
    if (most < 0 || count++ < most) out += by;
    out += one;
  });
  if (most < 0 || count < most) out += by;
  return out;
}

}  // namespace retort::chat
