// Upper and lower case; the tables are Python's.
#include <algorithm>
#include <iterator>

#include "retort/chat/code_points.h"
#include "retort/chat/template_limits.h"

namespace retort::chat {
namespace {

struct Shift {
  char32_t first, last, step;
  int add;
};
struct Longer {
  char32_t code;
  const char* text;
};
struct Range {
  char32_t first, last;
};

// clang-format off
#include "retort/chat/letter_case_tables.inc"
// clang-format on

// The row that may hold a code; rows are in order and apart.
template <typename Rows>
auto row_of(const Rows& rows, char32_t code) {
  const auto after = std::upper_bound(std::begin(rows), std::end(rows), code,
                                      [](char32_t value, const auto& row) { return value < row.first; });
  return after == std::begin(rows) ? std::end(rows) : std::prev(after);
}

template <typename Rows>
bool in_ranges(const Rows& rows, char32_t code) {
  const auto row = row_of(rows, code);
  return row != std::end(rows) && code <= row->last;
}

template <typename Shifts, typename Longers>
void append_changed(std::string& out, std::string_view one, const Shifts& shifts, const Longers& longers) {
  const char32_t code = text::read_character(one.data()).code;
  for (const auto& longer : longers)
    if (longer.code == code) {
      out += longer.text;
      return;
    }
  // Runs of every second code may lie in each other, so the one before counts as well.
  for (auto row = row_of(shifts, code); row != std::end(shifts); --row) {
    if (code <= row->last && (code - row->first) % row->step == 0)
      return text::append_utf8(out, static_cast<char32_t>(static_cast<int>(code) + row->add));
    if (row == std::begin(shifts) || code > row->last + 2) break;
  }
  out += one;
}

bool is_ascii(std::string_view one) {
  return static_cast<unsigned char>(one.front()) < 0x80;
}

}  // namespace

std::string to_upper(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::string_view one) {
    if (!is_ascii(one)) return append_changed(out, one, kUpperShifts, kLongUpper);
    out += one.front() >= 'a' && one.front() <= 'z' ? static_cast<char>(one.front() - 32) : one.front();
  });
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::string_view one) {
    if (one == "\u03A3")
      throw TemplateFault{"it puts a Greek capital sigma into lower case, which Retort lacks"};
    if (!is_ascii(one)) return append_changed(out, one, kLowerShifts, kLongLower);
    out += one.front() >= 'A' && one.front() <= 'Z' ? static_cast<char>(one.front() + 32) : one.front();
  });
  return out;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const auto first = text.substr(0, text::read_character(text.data()).size);
  if (in_ranges(kOtherTitle, text::read_character(text.data()).code))
    throw TemplateFault{"it capitalizes a letter whose title case Retort lacks"};
  return to_upper(first) + to_lower(text.substr(first.size()));
}

bool is_upper(char32_t code) {
  return code < 0x80 ? code >= 'A' && code <= 'Z' : in_ranges(kUpperRanges, code);
}
bool is_lower(char32_t code) {
  return code < 0x80 ? code >= 'a' && code <= 'z' : in_ranges(kLowerRanges, code);
}

}  // namespace retort::chat
