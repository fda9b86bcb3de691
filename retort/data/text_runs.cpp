#include "retort/data/text_runs.h"

#include <algorithm>
#include <array>

namespace retort::data {
namespace {

constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;  // odd, its bits look random

constexpr std::uint64_t power(std::int64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent > 0; --exponent) result *= kBase;
  return result;
}

// The finaliser of SplitMix64: a rolling hash is weak in its lower bits.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

bool is_space(unsigned char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

// Rabin and Karp: the hash of a run follows from that of the run before.
std::vector<std::uint64_t> text_runs(std::string_view text, std::uint64_t limit) {
  constexpr std::uint64_t kOldest = power(kRunBytes);
  std::array<unsigned char, kRunBytes> ring{};
  std::vector<std::uint64_t> runs;
  std::uint64_t hash = 0;
  std::int64_t taken = 0;
  bool after_space = true;
  for (const char c : text) {
    auto byte = static_cast<unsigned char>(c);
    const bool space = is_space(byte);
    if (space && after_space) continue;
    after_space = space;
    if (space) byte = ' ';
    auto& oldest = ring[static_cast<std::size_t>(taken % kRunBytes)];
    hash = hash * kBase + byte + 1 - (taken >= kRunBytes ? kOldest * (oldest + 1U) : 0);
    oldest = byte;
    if (++taken < kRunBytes) continue;
    if (const auto run = mixed(hash); run < limit) runs.push_back(run);
  }
  std::sort(runs.begin(), runs.end());
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  return runs;
}

}  // namespace retort::data
