#pragma once
// Seconds of work on a device: what is queued there is waited for at both ends.

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>

namespace retort::bench {

class Stopwatch {
 public:
  explicit Stopwatch(c10::Device device) : device_(device) {
    wait();
    begin_ = Clock::now();
  }
  double seconds() const {
    wait();
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void wait() const {
    if (!device_.is_cpu())
      c10::impl::VirtualGuardImpl(device_.type())
          .synchronizeDevice(device_.has_index() ? device_.index() : 0);
  }

  c10::Device device_;
  Clock::time_point begin_;
};

}  // namespace retort::bench
