#include "retort/ops/tensor_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>

#include "retort/ops/block_pool.h"

namespace retort::ops {
namespace {

std::atomic<std::int64_t> live_bytes{0}, peak_bytes{0}, common_bytes{0};  // the last is part of the others
std::atomic<std::int64_t> base_bytes{0};

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void count(std::int64_t bytes) {
  const auto now = live_bytes.fetch_add(bytes) + bytes;
  auto peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

// Of tensors that come from the pool.  Smaller ones take a heap that tears into holes; where such a heap held
// the matrices of a small model, a process took a third more than its tensors.
constexpr std::size_t kBigBytes = std::size_t{1} << 17;
// Of what else libraries allocate and give back in every call.
constexpr int kMappedBytes = 1 << 20;
// Enough for the blocks that a small model asks for in every step.
constexpr std::size_t kAlwaysKeptBytes = std::size_t{1} << 27;

BlockPool& block_pool() {
  static auto* one =
      new BlockPool;  // never destroyed: tensors of static life are freed after everything else
  return *one;
}

// What waits may be a quarter of the most that was ever in use, and what a small model needs in any case:
// what loading a model left behind must not keep out what each step needs.
std::size_t most_waiting_bytes() {
  const auto own_bytes = std::max<std::int64_t>(0, peak_bytes.load() - common_bytes.load());
  return static_cast<std::size_t>(own_bytes) / 4 + kAlwaysKeptBytes;
}

// libtorch wants the pointer to be its own context; the size of a small block is asked of malloc again.
void release(void* memory) {
  if (memory == nullptr) return;
  if (const auto size = block_pool().give(memory, most_waiting_bytes()); size > 0)
    return count(-static_cast<std::int64_t>(size));
  count(-static_cast<std::int64_t>(::malloc_usable_size(memory)));
  ::free(memory);
}

class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    void* memory = nullptr;
    if (size >= kBigBytes) {
      memory = block_pool().take(size);
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
    base_bytes = resident_bytes();
    ::mallopt(M_MMAP_THRESHOLD, kMappedBytes);  // a fixed one: by default it grows with what is freed
    static TensorAllocator allocator;
    c10::SetCPUAllocator(&allocator, /*priority=*/100);
    return true;
  }();
  (void)installed;
}

void limit_waiting_blocks(std::int64_t tensor_bytes) {
  block_pool().limit(static_cast<std::size_t>(tensor_bytes));
}

std::int64_t live_tensor_bytes() {
  return live_bytes.load();
}
std::int64_t peak_tensor_bytes() {
  return peak_bytes.load();
}
void reset_peak_tensor_bytes() {
  peak_bytes.store(live_bytes.load());
  block_pool().reset_peak();
}
std::int64_t peak_held_bytes() {
  return static_cast<std::int64_t>(block_pool().peak_bytes());
}

void count_common_bytes(std::int64_t bytes) {
  common_bytes += bytes;
  count(bytes);
}

std::int64_t tensor_bytes_from_system() {
  return static_cast<std::int64_t>(block_pool().from_system_bytes());
}

std::int64_t process_base_bytes() {
  return base_bytes;
}

// The heap has the tensors that the pool has not.
std::int64_t bytes_beside_tensors() {
  const auto of_pool = tensor_bytes_from_system();
  return std::max<std::int64_t>(0, resident_bytes() - std::max(of_pool, live_tensor_bytes()));
}

std::int64_t process_peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace retort::ops
