// Normalization form C: decompose, order combining marks, compose (Unicode Standard Annex 15).

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "retort/text/unicode.h"
#include "retort/text/unicode_tables.h"

namespace retort::text {
namespace {

// Hangul syllables are composed by arithmetic (Unicode 3.12).
constexpr char32_t kSyllableBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161, kTailBase = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28, kSyllables = kLeads * kVowels * kTails;

struct Tables {
  std::unordered_map<char32_t, const Decomposition*> decompositions;
  std::unordered_map<std::uint64_t, char32_t> compositions;
  std::vector<std::uint8_t> combining = std::vector<std::uint8_t>(0x1F000, 0);  // above, all are starters

  std::uint8_t combining_class(char32_t code) const { return code < combining.size() ? combining[code] : 0; }
};

std::uint64_t pair_key(char32_t first, char32_t second) {
  return std::uint64_t{first} << 32 | std::uint64_t{second};
}

const Tables& tables() {
  static const Tables built = [] {
    Tables t;
    for (std::size_t i = 0; i < kDecompositionCount; ++i)
      t.decompositions.emplace(kDecompositions[i].code, &kDecompositions[i]);
    for (std::size_t i = 0; i < kCompositionCount; ++i)
      t.compositions.emplace(pair_key(kCompositions[i].first, kCompositions[i].second),
                             kCompositions[i].composed);
    for (std::size_t i = 0; i < kCombiningRangeCount; ++i)
      for (std::uint32_t code = kCombiningRanges[i].first; code <= kCombiningRanges[i].last; ++code)
        t.combining.at(code) = kCombiningRanges[i].value;
    return t;
  }();
  return built;
}

void append_decomposed(std::vector<char32_t>& out, char32_t code, const Tables& t) {
  if (code - kSyllableBase < kSyllables) {
    const char32_t index = code - kSyllableBase;
    out.push_back(kLeadBase + index / (kVowels * kTails));
    out.push_back(kVowelBase + index % (kVowels * kTails) / kTails);
    if (index % kTails != 0) out.push_back(kTailBase + index % kTails);
    return;
  }
  const auto found = code < 0xC0 ? t.decompositions.end() : t.decompositions.find(code);
  if (found == t.decompositions.end()) return out.push_back(code);
  for (const std::uint32_t part : found->second->parts)
    if (part != 0) out.push_back(part);
}

void order_marks(std::vector<char32_t>& codes, const Tables& t) {
  for (auto run = codes.begin(); run != codes.end();) {
    if (t.combining_class(*run) == 0) {
      ++run;
      continue;
    }
    const auto end = std::find_if(run, codes.end(), [&t](char32_t c) { return t.combining_class(c) == 0; });
    std::stable_sort(run, end,
                     [&t](char32_t a, char32_t b) { return t.combining_class(a) < t.combining_class(b); });
    run = end;
  }
}

// The composite of two characters, or 0.
char32_t composite(char32_t first, char32_t second, const Tables& t) {
  if (first - kLeadBase < kLeads && second - kVowelBase < kVowels)
    return kSyllableBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTails;
  if (first - kSyllableBase < kSyllables && (first - kSyllableBase) % kTails == 0 && second > kTailBase &&
      second < kTailBase + kTails)
    return first + (second - kTailBase);
  const auto found = t.compositions.find(pair_key(first, second));
  return found == t.compositions.end() ? 0 : found->second;
}

void compose(std::vector<char32_t>& codes, const Tables& t) {
  std::size_t kept = 0, starter = codes.size();  // no starter seen yet
  int last_class = -1;                           // of the last mark kept after the starter; -1: none
  for (const char32_t code : std::vector<char32_t>(codes)) {
    const int mark = t.combining_class(code);
    const bool reachable =
        starter != codes.size() && (last_class == -1 || (last_class != 0 && last_class < mark));
    const char32_t joined = reachable ? composite(codes[starter], code, t) : 0;
    if (joined != 0) {
      codes[starter] = joined;
      continue;
    }
    if (mark == 0) {
      starter = kept;
      last_class = -1;
    } else {
      last_class = mark;
    }
    codes[kept++] = code;
  }
  codes.resize(kept);
}

}  // namespace

std::string to_nfc(std::string_view text) {
  // Below U+0300 nothing composes or reorders.
  if (std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xCC; }))
    return std::string(text);
  const Tables& t = tables();
  std::vector<char32_t> codes;
  codes.reserve(text.size());
  for (const char* at = text.data(); at != text.data() + text.size();) {
    const Character character = read_character(at);
    append_decomposed(codes, character.code, t);
    at += character.size;
  }
  order_marks(codes, t);
  compose(codes, t);
  std::string out;
  out.reserve(text.size());
  for (const char32_t code : codes) append_utf8(out, code);
  return out;
}

}  // namespace retort::text
