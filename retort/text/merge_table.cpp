#include "retort/text/merge_table.h"

#include <algorithm>
#include <bit>
#include <random>

namespace retort::text {

MergeTable::Factors MergeTable::drawn() {
  static const Factors once = [] {
    std::random_device device;
    const auto odd = [&] { return (std::uint64_t{device()} << 32 | device()) | 1; };
    return Factors{odd(), odd()};
  }();
  return once;
}

MergeTable::MergeTable(std::size_t expected) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(expected * 2, 16));
  shift_ = 64 - std::countr_zero(size);
  slots_.assign(size, Slot{kEmptyKey, {}});
}

void MergeTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  Slot& slot = slots_[slot_of(key)];
  if (slot.key == kEmptyKey) ++size_;
  slot = {key, merge};
}

}  // namespace retort::text
