#pragma once
// How attention is divided among threads.  Heads come first; where a machine has more threads than there are
// heads, the tiles of a head are divided too.  No tile knows of it, so the division changes no bit.

#include <cstdint>

namespace retort::kernels::cpu {

/// The first key that query `row` sees; a window of 0 hides none.
constexpr std::int64_t first_key(std::int64_t row, std::int64_t window) {
  return window > 0 && row + 1 > window ? row + 1 - window : 0;
}

/// A part of a head's tiles: from the beginning and from the end, because later tiles see more keys.
struct TilePart {
  std::int64_t number = 0, count = 1;
  std::int64_t first_tile = 0;  ///< those before it nobody has

  bool has(std::int64_t tile) const {
    if (tile < first_tile) return false;
    const auto place = (tile - first_tile) % (2 * count);
    return place == number || place == 2 * count - 1 - number;
  }
  /// Of the tiles before `end`.
  bool has_any(std::int64_t end) const { return first_tile + number < end; }
};

/// Into how many parts each of `heads` heads with `tiles` tiles is best divided for `threads` threads, if a
/// divided head takes `growth` times the work.
constexpr std::int64_t best_parts(std::int64_t heads, std::int64_t tiles, std::int64_t threads,
                                  double growth) {
  std::int64_t best = 1;
  const auto time = [&](std::int64_t parts) {
    const auto rounds = static_cast<double>((heads * parts + threads - 1) / threads);
    return rounds / static_cast<double>(parts) * (parts > 1 ? growth : 1);
  };
  for (std::int64_t parts = 2; 2 * parts <= tiles && heads * (parts - 1) < threads; ++parts)
    if (time(parts) < time(best)) best = parts;
  return best;
}

}  // namespace retort::kernels::cpu
