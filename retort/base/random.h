#pragma once
// Counter-based random numbers: draw number i of a stream is a function of (seed, stream, i), so a position
// is one integer and any thread can compute any draw.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace retort::base {

/// Philox4x32-10 block function.  Source: Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2,
/// 3".
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// A sequential view of one Philox stream; `position` is the whole state and may be saved and set.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  std::uint64_t next_u64();
  /// Uniform in [0, 1) with 53 bits.
  double next_double();
  /// Uniform in [0, bound), without modulo bias; bound > 0.
  std::uint64_t next_below(std::uint64_t bound);
  /// Standard normal (Box-Muller, cosine branch only so that every call uses two draws).
  double next_normal();
  static constexpr std::uint64_t kDrawsOfNormal = 2;

  std::uint64_t position() const { return position_; }
  void set_position(std::uint64_t position) { position_ = position; }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
};

/// Fisher-Yates: every order of `items` is equally likely.
template <typename Item>
void shuffle(std::vector<Item>& items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[random.next_below(left)]);
}

/// A stream number from a name, so that streams of different purposes never meet.
std::uint64_t stream_of(std::string_view name);

}  // namespace retort::base
