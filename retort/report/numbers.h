#pragma once
// Numbers as a table shows them, whatever the locale; a missing one is an en dash.

#include <optional>
#include <string>

namespace retort::report {

using Number = std::optional<double>;

inline constexpr const char* kMissing = "\u2013";

/// "12.30"
std::string fixed(Number value, int decimals);
/// "+0.0123", "-0.0123"
std::string signed_fixed(Number value, int decimals);
/// About `digits` significant digits without an exponent where that reads well: "0.0123", "12.3", "4210",
/// "3.1e-07".
std::string significant(Number value, int digits = 3);
/// A fraction as "81.5 %".
std::string percent(Number fraction, int decimals = 1);
/// "5.51 M", "11.0 MB", "3 min 20 s"
std::string count(Number value);
std::string bytes(Number value);
std::string seconds(Number value);

}  // namespace retort::report
