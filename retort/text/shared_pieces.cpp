#include "retort/text/shared_pieces.h"

#include <algorithm>
#include <array>

namespace retort::text {
namespace {

constexpr std::uint64_t kWriting = std::uint64_t{1} << 16, kVersion = kWriting << 1;

std::uint64_t size_of(std::uint64_t state) {
  return state & 0xFF;
}
std::uint64_t count_of(std::uint64_t state) {
  return state >> 8 & 0xFF;
}

}  // namespace

std::size_t SharedPieces::find(const PieceKey& key, std::span<std::int32_t, kMostIds> ids) const {
  const auto& place = slot(key);
  const auto state = place.state.load(std::memory_order_acquire);
  if ((state & kWriting) != 0 || size_of(state) != key.size) return 0;
  std::array<std::uint64_t, 4> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = place.words[i].load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kMostIds / 2; ++i) {
    const auto two = place.ids[i].load(std::memory_order_relaxed);
    ids[2 * i] = static_cast<std::int32_t>(two);
    ids[2 * i + 1] = static_cast<std::int32_t>(two >> 32);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool sound = place.state.load(std::memory_order_relaxed) == state;
  return sound && key.equals(words, static_cast<std::uint8_t>(size_of(state))) ? count_of(state) : 0;
}

void SharedPieces::store(const PieceKey& key, std::span<const std::int32_t> ids) {
  if (ids.empty() || ids.size() > kMostIds) return;
  auto& place = slot(key);
  auto state = place.state.load(std::memory_order_relaxed);
  if ((state & kWriting) != 0 ||
      !place.state.compare_exchange_strong(state, state | kWriting, std::memory_order_acquire))
    return;
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < key.words.size(); ++i)
    place.words[i].store(key.words[i], std::memory_order_relaxed);
  const auto id = [&](std::size_t i) {
    return i < ids.size() ? std::uint64_t{static_cast<std::uint32_t>(ids[i])} : 0;
  };
  for (std::size_t i = 0; i < kMostIds / 2; ++i)
    place.ids[i].store(id(2 * i) | id(2 * i + 1) << 32, std::memory_order_relaxed);
  const auto version = (state & ~(kVersion - 1)) + kVersion;
  place.state.store(version | ids.size() << 8 | key.size, std::memory_order_release);
}

}  // namespace retort::text
