#include "retort/text/unicode.h"

#include <cstring>
#include <vector>

#include "retort/text/unicode_tables.h"

namespace retort::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the character at `at` if it is whole and well-formed; otherwise `*bad` is the length of its
// invalid part.
std::size_t character_length(const unsigned char* at, const unsigned char* end, std::size_t* bad) {
  const unsigned char lead = *at;
  *bad = 1;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Overlong forms, surrogates and code points past U+10FFFF show in the second byte.
  unsigned char low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < size; ++i, low = 0x80, high = 0xBF) {
    if (at + i == end || at[i] < low || at[i] > high) {
      *bad = i;
      return 0;
    }
  }
  return size;
}

bool eight_ascii(const unsigned char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return (word & 0x8080808080808080ULL) == 0;
}

}  // namespace

const std::uint16_t* character_classes() {
  static const std::vector<std::uint16_t> table = [] {
    std::vector<std::uint16_t> classes(0x110000, 0);
    for (std::size_t i = 0; i < kClassRangeCount; ++i)
      for (std::uint32_t code = kClassRanges[i].first; code <= kClassRanges[i].last; ++code)
        classes[code] = kClassRanges[i].value;
    return classes;
  }();
  return table.data();
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::size_t valid_utf8_prefix(std::string_view bytes) {
  const auto* const begin = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto* const end = begin + bytes.size();
  const auto* at = begin;
  while (at != end) {
    if (end - at >= 8 && eight_ascii(at)) {
      at += 8;
      continue;
    }
    std::size_t bad = 0;
    const std::size_t size = character_length(at, end, &bad);
    if (size == 0) break;
    at += size;
  }
  return static_cast<std::size_t>(at - begin);
}

std::string_view to_valid_utf8(std::string_view bytes, std::string& storage) {
  std::size_t valid = valid_utf8_prefix(bytes);
  if (valid == bytes.size()) return bytes;
  storage.clear();
  while (true) {
    storage.append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) return storage;
    const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
    std::size_t bad = 0;
    character_length(at, at + bytes.size(), &bad);
    storage.append(kReplacement);
    bytes.remove_prefix(bad);
    valid = valid_utf8_prefix(bytes);
  }
}

}  // namespace retort::text
