#include "retort/tasks/python_random.h"

#include <bit>
#include <numeric>
#include <unordered_set>

namespace retort::tasks {

PythonRandom::PythonRandom(std::uint64_t seed) {
  words_[0] = 19650218U;
  for (std::size_t i = 1; i < kWords; ++i)
    words_[i] = 1812433253U * (words_[i - 1] ^ (words_[i - 1] >> 30)) + static_cast<std::uint32_t>(i);
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed),
                                         static_cast<std::uint32_t>(seed >> 32)};
  const std::size_t key_words = key[1] != 0 ? 2 : 1;
  std::size_t i = 1, j = 0;
  const auto step = [&] {
    if (++i < kWords) return;
    words_[0] = words_[kWords - 1];
    i = 1;
  };
  for (std::size_t left = kWords; left > 0; --left) {
    const auto mixed = words_[i] ^ ((words_[i - 1] ^ (words_[i - 1] >> 30)) * 1664525U);
    words_[i] = mixed + key[j] + static_cast<std::uint32_t>(j);
    step();
    j = (j + 1) % key_words;
  }
  for (std::size_t left = kWords - 1; left > 0; --left) {
    const auto mixed = words_[i] ^ ((words_[i - 1] ^ (words_[i - 1] >> 30)) * 1566083941U);
    words_[i] = mixed - static_cast<std::uint32_t>(i);
    step();
  }
  words_[0] = 0x80000000U;
}

void PythonRandom::refill() {
  constexpr std::size_t kFar = 397;
  for (std::size_t i = 0; i < kWords; ++i) {
    const auto joined = (words_[i] & 0x80000000U) | (words_[(i + 1) % kWords] & 0x7fffffffU);
    words_[i] = words_[(i + kFar) % kWords] ^ (joined >> 1) ^ ((joined & 1U) != 0 ? 0x9908b0dfU : 0U);
  }
  at_ = 0;
}

std::uint32_t PythonRandom::next() {
  if (at_ == kWords) refill();
  std::uint32_t word = words_[at_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680U;
  word ^= (word << 15) & 0xefc60000U;
  return word ^ (word >> 18);
}

std::uint64_t PythonRandom::bits(int count) {
  if (count <= 32) return next() >> (32 - count);
  const std::uint64_t low = next();
  return low | static_cast<std::uint64_t>(next() >> (64 - count)) << 32;
}

std::uint64_t PythonRandom::below(std::uint64_t bound) {
  const int count = std::bit_width(bound);
  for (;;)
    if (const auto drawn = bits(count); drawn < bound) return drawn;
}

double PythonRandom::uniform() {
  const auto high = static_cast<double>(next() >> 5), low = static_cast<double>(next() >> 6);
  return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

std::vector<std::size_t> PythonRandom::sample(std::size_t size, std::size_t count) {
  std::size_t set_size = 21;  // of a small set, minus that of an empty list
  if (count > 5) {
    std::size_t power = 1;
    while (power < 3 * count) power *= 4;
    set_size += power;
  }
  std::vector<std::size_t> chosen;
  chosen.reserve(count);
  if (size <= set_size) {
    std::vector<std::size_t> pool(size);
    std::iota(pool.begin(), pool.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = below(size - i);
      chosen.push_back(pool[at]);
      pool[at] = pool[size - i - 1];
    }
    return chosen;
  }
  std::unordered_set<std::size_t> seen;
  while (chosen.size() < count)
    if (const auto at = below(size); seen.insert(at).second) chosen.push_back(at);
  return chosen;
}

}  // namespace retort::tasks
