#pragma once
// What several threads have learned of short pieces, for those among them that meet a piece for the first
// time.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "retort/text/piece_cache.h"

namespace retort::text {

/// A hash table in which a piece has one place, and a later piece replaces an earlier one.  All functions may
/// be called from several threads; none waits for another.
class SharedPieces {
 public:
  static constexpr std::size_t kMostIds = 6;

  /// The number of tokens of a piece, written to `ids`; 0 if they are not known.
  std::size_t find(const PieceKey& key, std::span<std::int32_t, kMostIds> ids) const;
  /// Too many tokens are not kept, nor any while another thread writes to the same place.
  void store(const PieceKey& key, std::span<const std::int32_t> ids);

 private:
  // One cache line.  `state` is (version, count, size): a reader has a sound slot where the version is even
  // and the same before and after.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint64_t> words[4];
    std::atomic<std::uint64_t> ids[kMostIds / 2];
  };
  static constexpr int kBits = 17;

  Slot& slot(const PieceKey& key) const { return slots_[key.hash() >> (64 - kBits)]; }

  std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(std::size_t{1} << kBits);
};

}  // namespace retort::text
