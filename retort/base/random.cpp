#include "retort/base/random.h"

#include <cmath>
#include <numbers>

#include "retort/base/hash.h"

namespace retort::base {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u, kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{kM0} * counter[0], p1 = std::uint64_t{kM1} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += kW0;
    key[1] += kW1;
  }
  return counter;
}

std::uint64_t Random::next_u64() {
  const std::uint64_t block = position_ / 2;
  const auto words =
      philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                  static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                 {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  const std::size_t half = (position_ % 2) * 2;
  ++position_;
  return (std::uint64_t{words[half + 1]} << 32) | words[half];
}

double Random::next_double() {
  return static_cast<double>(next_u64() >> 11) * 0x1.0p-53;
}

std::uint64_t Random::next_below(std::uint64_t bound) {
  // Draws from the incomplete last multiple of `bound` are thrown away.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t draw = next_u64();
  while (draw >= limit) draw = next_u64();
  return draw % bound;
}

double Random::next_normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-next_double()));
  return radius * std::cos(2.0 * std::numbers::pi * next_double());
}

std::uint64_t stream_of(std::string_view name) {
  return hash64(name);
}

}  // namespace retort::base
