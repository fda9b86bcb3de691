#include "retort/report/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "retort/base/units.h"

namespace retort::report {
namespace {

std::string print(double value, std::chars_format format, int precision) {
  char buffer[512];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, format, precision);
  return error == std::errc() ? std::string(buffer, end) : kMissing;
}

/// Beyond this a count or a duration is damage, not data; it also keeps the conversions to integers defined.
constexpr double kAbsurd = 1e18;

bool sensible(Number value) {
  return value && *value >= 0 && *value < kAbsurd;
}

}  // namespace

std::string fixed(Number value, int decimals) {
  if (!value || !std::isfinite(*value)) return kMissing;
  if (std::abs(*value) >= 1e9) return print(*value, std::chars_format::scientific, 2);
  return print(*value, std::chars_format::fixed, decimals);
}

std::string signed_fixed(Number value, int decimals) {
  const std::string sign = value && std::isfinite(*value) && !std::signbit(*value) ? "+" : "";
  return sign + fixed(value, decimals);
}

std::string significant(Number value, int digits) {
  if (!value || !std::isfinite(*value)) return kMissing;
  if (*value == 0) return "0";
  const double size = std::abs(*value);
  if (size < 1e-4 || size >= 1e9) return print(*value, std::chars_format::scientific, digits - 1);
  const int decimals = std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(size))));
  return print(*value, std::chars_format::fixed, decimals);
}

std::string percent(Number fraction, int decimals) {
  if (!fraction) return kMissing;
  return fixed(*fraction * 100, decimals) + " %";
}

std::string count(Number value) {
  return sensible(value) ? base::human_count(*value) : kMissing;
}

std::string bytes(Number value) {
  return sensible(value) ? base::human_bytes(static_cast<std::uint64_t>(*value)) : kMissing;
}

std::string seconds(Number value) {
  return sensible(value) ? base::human_seconds(*value) : kMissing;
}

}  // namespace retort::report
