#include "retort/comm/sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "retort/base/error.h"

namespace retort::comm {
namespace {

// Values at a time: their sums stay in the first-level cache.
constexpr std::int64_t kChunk = 2048;

template <typename T>
void sum_numbers(std::span<const void* const> parts, std::int64_t count, void* sum) {
  T sums[kChunk];
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    const auto n = std::min(kChunk, count - begin);
    const auto at = [&](const void* part) { return static_cast<const T*>(part) + begin; };
    std::copy_n(at(parts.front()), n, sums);
    for (const void* part : parts.subspan(1)) {
      const T* values = at(part);
      for (std::int64_t i = 0; i < n; ++i) sums[i] += values[i];
    }
    std::copy_n(sums, n, static_cast<T*>(sum) + begin);
  }
}

float widened(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void sum_bf16(std::span<const void* const> parts, std::int64_t count, void* sum) {
  float sums[kChunk];
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    const auto n = std::min(kChunk, count - begin);
    std::fill_n(sums, n, 0.0F);
    for (const void* part : parts) {
      const auto* values = static_cast<const std::uint16_t*>(part) + begin;
      for (std::int64_t i = 0; i < n; ++i) sums[i] += widened(values[i]);
    }
    auto* to = static_cast<std::uint16_t*>(sum) + begin;
    for (std::int64_t i = 0; i < n; ++i) to[i] = rounded(sums[i]);
  }
}

}  // namespace

void sum_in_order(std::span<const void* const> parts, std::int64_t count, Type type, void* sum) {
  base::ensure(!parts.empty(), "a sum has parts");
  switch (type) {
    case Type::f32:
      return sum_numbers<float>(parts, count, sum);
    case Type::f64:
      return sum_numbers<double>(parts, count, sum);
    case Type::bf16:
      return sum_bf16(parts, count, sum);
    case Type::bytes:
      break;
  }
  base::ensure(false, "sums are of numbers");
}

}  // namespace retort::comm
