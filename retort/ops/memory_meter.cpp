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

// The size travels with the pointer, so that freeing subtracts what allocating added.
struct Held {
  c10::DataPtr memory;
  std::int64_t bytes;
};

void release(void* context) {
  auto* held = static_cast<Held*>(context);
  count(-held->bytes);
  delete held;
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(std::size_t size) override {
    auto* held = new Held{inner_->allocate(size), static_cast<std::int64_t>(size)};
    count(held->bytes);
    return {held->memory.get(), held, &release, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, std::size_t size) const override { default_copy_data(to, from, size); }

 private:
  c10::Allocator* inner_;
};

}  // namespace

void install_memory_meter() {
  static const bool installed = [] {
    // glibc gives big blocks back to the kernel at once by default, and every step would fault them in again.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
    ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
    static CountingAllocator allocator(c10::GetCPUAllocator());
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
