#include "retort/ops/tensor_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <limits>
#include <list>
#include <mutex>
#include <new>
#include <unordered_map>

namespace retort::ops {
namespace {

std::atomic<std::int64_t> live_bytes{0}, peak_bytes{0};

void count(std::int64_t bytes) {
  const auto now = live_bytes.fetch_add(bytes) + bytes;
  auto peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

constexpr std::size_t kBigBytes = std::size_t{1} << 20;
// From here on pages of 2 MB waste little, and the kernel clears a block in few faults instead of thousands.
constexpr std::size_t kHugePageBytes = std::size_t{1} << 21, kHugeBytes = 4 * kHugePageBytes;
// Enough for the blocks that a small model asks for in every step.
constexpr std::size_t kAlwaysKeptBytes = std::size_t{1} << 27;

void* fresh_block(std::size_t size) {
  const bool huge = size >= kHugeBytes;
  void* memory = nullptr;
  if (::posix_memalign(&memory, huge ? kHugePageBytes : c10::gAlignment, size) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (huge) ::madvise(memory, size, MADV_HUGEPAGE);  // a wish: where it is not granted, nothing is lost
#endif
  return memory;
}

// Big blocks that were freed wait here for the next tensor of about their size.  glibc would either give each
// back to the kernel, to be faulted in again by the next step, or keep all of them in a heap that tears into
// holes: packed text makes tensors of ever new sizes, and the process grew to several times what its tensors
// needed.
class BigBlocks {
 public:
  void* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto rounded = size_class(size);
    const auto found = smallest_between(rounded, rounded + rounded / 4);
    if (found == waiting_.end()) make_room(rounded);
    const auto block = found == waiting_.end() ? Waiting{fresh_block(rounded), rounded} : leave(found);
    in_use_[block.memory] = {block.capacity, size};
    in_use_bytes_ += block.capacity;
    return block.memory;
  }

  /// The size that was asked for; 0 when the block is not one of these.
  std::size_t give(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = in_use_.find(memory);
    if (found == in_use_.end()) return 0;
    const auto [capacity, size] = found->second;
    in_use_.erase(found);
    in_use_bytes_ -= capacity;
    // What waits may be a quarter of the most that was ever in use, and what a small model needs in any case.
    const auto most_bytes = static_cast<std::size_t>(peak_bytes.load()) / 4 + kAlwaysKeptBytes;
    if (capacity > most_bytes) {
      ::free(memory);
      return size;
    }
    waiting_.push_back({memory, capacity});
    waiting_bytes_ += capacity;
    // What loading a model left behind must not keep out what each step needs.
    while (waiting_bytes_ > most_bytes) ::free(leave(waiting_.begin()).memory);
    return size;
  }

  void limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_bytes_ = bytes;
  }

 private:
  struct Block {
    std::size_t capacity, size;
  };

  struct Waiting {
    void* memory;
    std::size_t capacity;
  };
  using Place = std::list<Waiting>::iterator;

  void make_room(std::size_t size) {
    while (!waiting_.empty() && in_use_bytes_ + waiting_bytes_ + size > limit_bytes_)
      ::free(leave(waiting_.begin()).memory);
  }

  // Few wait, so a walk over them takes nothing beside the work on a block.
  Place smallest_between(std::size_t least, std::size_t most) {
    auto best = waiting_.end();
    for (auto place = waiting_.begin(); place != waiting_.end(); ++place)
      if (place->capacity >= least && place->capacity <= most &&
          (best == waiting_.end() || place->capacity <= best->capacity))
        best = place;
    return best;
  }

  Waiting leave(Place place) {
    const auto block = *place;
    waiting_bytes_ -= block.capacity;
    waiting_.erase(place);
    return block;
  }

  // Eight classes between powers of two: at most an eighth is wasted.
  static std::size_t size_class(std::size_t size) {
    const std::size_t step = std::bit_floor(size) / 8;
    return (size + step - 1) / step * step;
  }

  std::mutex mutex_;
  std::list<Waiting> waiting_;  // the longest first
  std::unordered_map<void*, Block> in_use_;
  std::size_t waiting_bytes_ = 0, in_use_bytes_ = 0;
  std::size_t limit_bytes_ = std::numeric_limits<std::size_t>::max();
};

BigBlocks& big_blocks() {
  static auto* blocks =
      new BigBlocks;  // never destroyed: tensors of static life are freed after everything else
  return *blocks;
}

// libtorch wants the pointer to be its own context; the size of a small block is asked of malloc again.
void release(void* memory) {
  if (memory == nullptr) return;
  if (const auto size = big_blocks().give(memory); size > 0) return count(-static_cast<std::int64_t>(size));
  count(-static_cast<std::int64_t>(::malloc_usable_size(memory)));
  ::free(memory);
}

class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    void* memory = nullptr;
    if (size >= kBigBytes) {
      memory = big_blocks().take(size);
      count(static_cast<std::int64_t>(size));
    } else if (size > 0) {
      if (::posix_memalign(&memory, c10::gAlignment, size) != 0) throw std::bad_alloc();
      count(static_cast<std::int64_t>(::malloc_usable_size(memory)));
    }
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }
};

}  // namespace

void install_tensor_allocator() {
  static const bool installed = [] {
    ::mallopt(M_MMAP_THRESHOLD, kBigBytes);  // a fixed one: by default it grows with what is freed
    static TensorAllocator allocator;
    c10::SetCPUAllocator(&allocator, /*priority=*/100);
    return true;
  }();
  (void)installed;
}

void limit_waiting_blocks(std::int64_t tensor_bytes) {
  big_blocks().limit(static_cast<std::size_t>(tensor_bytes));
}

std::int64_t live_tensor_bytes() {
  return live_bytes.load();
}
std::int64_t peak_tensor_bytes() {
  return peak_bytes.load();
}
void reset_peak_tensor_bytes() {
  peak_bytes.store(live_bytes.load());
}

std::int64_t process_peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace retort::ops
