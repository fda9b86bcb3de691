#include "retort/base/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

namespace retort::base {
namespace {

std::string format(const char* pattern, double value, const char* suffix) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value, suffix);
  return text;
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value < 1e3) return format("%.0f %s", value, "B");
  if (value < 1e6) return format("%.1f %s", value / 1e3, "kB");
  if (value < 1e9) return format("%.1f %s", value / 1e6, "MB");
  return format("%.2f %s", value / 1e9, "GB");
}

std::string human_count(double count) {
  if (count < 1e3) return format("%.0f%s", count, "");
  if (count < 1e6) return format("%.1f %s", count / 1e3, "k");
  if (count < 1e9) return format("%.2f %s", count / 1e6, "M");
  return format("%.2f %s", count / 1e9, "B");
}

std::string human_flops(double flops) {
  if (flops < 1e12) return format("%.3g %s", flops / 1e9, "GFLOP");
  if (flops < 1e15) return format("%.3g %s", flops / 1e12, "TFLOP");
  return format("%.3g %s", flops / 1e15, "PFLOP");
}

std::string human_seconds(double seconds) {
  char text[64];
  const auto whole = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole % 3600 / 60);
  else if (whole >= 60)
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with("+-")) return {};
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return {};
  return value;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  if (text.empty()) return {};
  double scale = 1;
  switch (text.back()) {
    case 'k':
    case 'K':
      scale = 1e3;
      break;
    case 'M':
      scale = 1e6;
      break;
    case 'G':
    case 'B':
      scale = 1e9;
      break;
    case 'T':
      scale = 1e12;
      break;
    default:
      break;
  }
  if (scale != 1) text.remove_suffix(1);
  const auto number = parse_number(text);
  if (!number) return {};
  const double value = *number * scale;
  if (std::abs(value) > 9e15 || std::abs(value - std::round(value)) > 1e-6) return {};
  return static_cast<std::int64_t>(std::llround(value));
}

// Time is the product of both lengths, and a longer word is no slip of a key.
constexpr std::size_t kLongestWord = 256;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) > kLongestWord) return std::max(a.size(), b.size());
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace retort::base
