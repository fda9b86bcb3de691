#include "retort/ops/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>

namespace retort::ops {
namespace {

std::atomic<std::int64_t> live_bytes{0}, peak_bytes{0};

void count(std::int64_t bytes) {
  const auto now = live_bytes.fetch_add(bytes) + bytes;
  auto peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

// libtorch wants the pointer to be its own context, so the size is asked of malloc again when it is freed.
c10::Allocator* inner_allocator = nullptr;

void release(void* memory) {
  count(-static_cast<std::int64_t>(::malloc_usable_size(memory)));
  inner_allocator->raw_deleter()(memory);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    void* memory = inner_allocator->allocate(size).release_context();
    count(static_cast<std::int64_t>(::malloc_usable_size(memory)));
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t size) const override { default_copy_data(to, from, size); }
};
}  // namespace

void install_memory_meter() {
  static const bool installed = [] {
    // glibc gives big blocks back to the kernel at once by default, and every step would fault them in again.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
    ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
    inner_allocator = c10::GetCPUAllocator();
    static CountingAllocator allocator;
    c10::SetCPUAllocator(&allocator, /*priority=*/100);
    return true;
  }();
  (void)installed;
}

std::int64_t live_tensor_bytes() { return live_bytes.load(); }
std::int64_t peak_tensor_bytes() { return peak_bytes.load(); }
void reset_peak_tensor_bytes() { peak_bytes.store(live_bytes.load()); }

std::int64_t process_peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace retort::ops
