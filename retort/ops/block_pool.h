#pragma once
// Memory for big tensors: one stretch of addresses, of which freed pieces join and serve tensors of any size.
//
// glibc would give each big block back to the kernel, to be faulted in again by the next step.  Blocks that
// are kept by their size serve only tensors of about that size, and packed text makes ever new sizes.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace retort::ops {

/// Safe for calls from several threads.  Its end ends all of its blocks.
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  /// At least `size` bytes, at a multiple of 4096.  Throws std::bad_alloc.
  void* take(std::size_t size);

  /// The size that was asked for; 0 where `memory` is no block of the pool.  Of what is free, at most so
  /// many bytes keep their memory, where huge pages allow it; the rest goes back to the system.
  std::size_t give(void* memory, std::size_t most_waiting_bytes);

  /// From now on blocks and free pieces with memory take no more than this together, where blocks alone do
  /// not.
  void limit(std::size_t bytes);

  /// Bytes of blocks, and of free pieces that keep their memory.
  std::size_t in_use_bytes() const;
  std::size_t waiting_bytes() const;
  /// The most that both were together since the last reset.
  std::size_t peak_bytes() const;
  void reset_peak();
  /// Bytes that were ever asked of the system, again where they had gone back.
  std::size_t from_system_bytes() const;

 private:
  struct Block {
    std::size_t capacity, size;
  };
  // A free piece: all of it has memory, or none.
  struct Hole {
    std::size_t bytes;
    bool waiting;
    std::uint64_t freed;  ///< when, counted in blocks given back
  };
  using Holes = std::map<std::byte*, Hole>;
  // Addresses up to `usable` may be used; those up to `end` are only reserved, in a mapping that is larger.
  struct Region {
    std::byte *begin, *usable, *end;
    void* mapping;
    std::size_t mapping_bytes;
  };
  struct Place {
    std::byte* begin = nullptr;
    std::size_t fresh_bytes = std::numeric_limits<std::size_t>::max(), run_bytes = 0;
  };

  Place best_place(std::size_t bytes) const;
  bool ends_region(const std::byte* address) const;
  std::size_t fresh_bytes(std::byte* begin, std::byte* end) const;
  template <typename Visit>
  void for_each_bare(std::byte* begin, std::byte* end, Visit visit) const;
  void touch(std::byte* begin, std::byte* end);
  void reserve(std::size_t bytes);
  void make_usable(std::byte* begin, std::byte* end);
  void carve(std::byte* begin, std::byte* end);
  void insert(std::byte* begin, const Hole& hole);
  void shrink_waiting(std::size_t most_bytes);
  bool release_oldest();

  mutable std::mutex mutex_;
  std::vector<Region> regions_;
  Holes holes_;
  std::unordered_map<void*, Block> blocks_;
  std::uint64_t given_ = 0;
  std::size_t in_use_bytes_ = 0, waiting_bytes_ = 0, peak_bytes_ = 0, from_system_bytes_ = 0;
  std::size_t limit_bytes_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace retort::ops
