#pragma once
// random.Random of CPython: the Mersenne Twister, seeded by a whole number, with the draws that
// lm-evaluation-harness makes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace retort::tasks {

class PythonRandom {
 public:
  /// As random.Random(seed).  Source: Matsumoto and Nishimura 1998, init_by_array of 2002.
  explicit PythonRandom(std::uint64_t seed);

  /// As getrandbits; 1 to 64 bits.
  std::uint64_t bits(int count);
  /// As _randbelow_with_getrandbits; bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// As random(): uniform in [0, 1).
  double uniform();
  /// The places that sample(population, count) takes out of a population of this size; count <= size.
  std::vector<std::size_t> sample(std::size_t size, std::size_t count);
  /// The place that each draw of choices() takes; size > 0.
  std::size_t choice(std::size_t size) {
    return static_cast<std::size_t>(uniform() * static_cast<double>(size));
  }

 private:
  static constexpr std::size_t kWords = 624;
  std::uint32_t next();
  void refill();

  std::array<std::uint32_t, kWords> words_;
  std::size_t at_ = kWords;
};

}  // namespace retort::tasks
