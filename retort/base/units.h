#pragma once
// Numbers for people: SI units inside, these only when printing or reading what a person wrote.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace retort::base {

/// "11.0 MB"
std::string human_bytes(std::uint64_t bytes);
/// "5.51 M", for counts of parameters and tokens.
std::string human_count(double count);
/// "76.5 TFLOP", of floating-point operations.
std::string human_flops(double flops);
/// "1 h 02 min", "3 min 20 s", "12.3 s"
std::string human_seconds(double seconds);

/// Reads "60k", "1.5M", "2e9", "120000" as a whole number; empty when it is none.  Suffixes k, M, G, B, T are
/// powers of 1000.
std::optional<std::int64_t> parse_count(std::string_view text);
/// Reads a decimal number whatever the locale; empty when the whole text is none.
std::optional<double> parse_number(std::string_view text);

/// The candidate nearest to `word` by edit distance, empty when none is near enough to be meant.
template <typename Names>
std::string nearest(std::string_view word, const Names& names);

/// Of words of more than 256 bytes the length of the longer one.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <typename Names>
std::string nearest(std::string_view word, const Names& names) {
  std::string best;
  std::size_t best_distance = word.size() / 2 + 2;
  for (const auto& name : names) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace retort::base
