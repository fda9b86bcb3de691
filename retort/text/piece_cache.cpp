#include "retort/text/piece_cache.h"

#include <algorithm>

namespace retort::text {

void PieceCache::store(const PieceKey& key, std::span<const std::int32_t> ids) {
  if (ids.empty() || ids.size() > kMostIds) return;
  if (++stored_ > slots_.size() && shift_ > 64 - kLastBits) grow();
  Slot& slot = slots_[key.hash() >> shift_];
  slot.words = key.words;
  slot.size = key.size;
  slot.count = static_cast<std::uint8_t>(ids.size());
  std::copy(ids.begin(), ids.end(), slot.ids.begin());
}

void PieceCache::grow() {
  stored_ = 0;
  shift_ -= 2;
  slots_.assign(slots_.size() * 4, Slot{});
}

}  // namespace retort::text
