#pragma once
// The merges of a byte-pair encoding.

#include <cstdint>
#include <vector>

namespace retort::text {

/// Pair of tokens -> (rank, token): a hash table with open addressing.  Its hash is drawn anew by each
/// process, so that no file can bring pairs that all share a slot.
class MergeTable {
 public:
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
  struct Merge {
    std::uint32_t rank = kNoRank;
    std::int32_t token = -1;
  };

  explicit MergeTable(std::size_t expected);
  /// A later entry for the same pair replaces an earlier one.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  Merge find(std::int32_t left, std::int32_t right) const {
    return slots_[slot_of(key_of(left, right))].merge;
  }
  std::size_t size() const { return size_; }
  /// Calls `visit(left, right)` for each pair, in no order.
  template <typename Visit>
  void for_each_pair(const Visit& visit) const {
    for (const Slot& slot : slots_)
      if (slot.key != kEmptyKey)
        visit(static_cast<std::int32_t>(slot.key >> 32), static_cast<std::int32_t>(slot.key));
  }

 private:
  static constexpr std::uint64_t kEmptyKey = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key;
    Merge merge;
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    // Any two pairs share a slot with a probability of at most 2 / slots, whatever they are.  Source:
    // Dietzfelbinger et al. 1997, "A reliable randomized algorithm for the closest-pair problem".
    std::uint64_t mixed = key * factors_.first;
    mixed ^= mixed >> 32;
    std::size_t slot = mixed * factors_.second >> shift_;
    while (slots_[slot].key != key && slots_[slot].key != kEmptyKey) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  struct Factors {
    std::uint64_t first, second;  // odd
  };
  static Factors drawn();

  std::vector<Slot> slots_;
  Factors factors_ = drawn();
  int shift_ = 0;
  std::size_t size_ = 0;
};

}  // namespace retort::text
