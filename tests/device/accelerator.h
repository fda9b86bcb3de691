#pragma once
// The test device as a group sees it.

#include <cstring>
#include <vector>

#include "device/test_device.h"
#include "retort/comm/accelerator.h"
#include "retort/comm/sum.h"

namespace retort::test {

class TestMark final : public comm::Mark {
 public:
  explicit TestMark(device::Stream* stream) : event_(device::record(stream)) {}
  bool reached() const override { return device::has_been_reached(*event_); }
  double seconds_since(const comm::Mark& earlier) const override {
    return device::reached_at_seconds(*event_) -
           device::reached_at_seconds(*dynamic_cast<const TestMark&>(earlier).event_);
  }
  const std::shared_ptr<device::Event>& event() const { return event_; }

 private:
  std::shared_ptr<device::Event> event_;
};

class TestAccelerator final : public comm::Accelerator {
 public:
  explicit TestAccelerator(int number) : device_(number), exchange_(device::new_stream(number)) {}

  void to_host(void* host, const void* from, std::int64_t bytes) override {
    enter();
    device::to_host(host, from, bytes);
  }
  void to_device(void* to, const void* host, std::int64_t bytes) override {
    enter();
    device::to_device(to, host, bytes);
  }
  void enter() override { device::set_current_device(device_); }
  std::shared_ptr<comm::Mark> mark(comm::Stream stream) override {
    return std::make_shared<TestMark>(of(stream));
  }
  void wait(comm::Stream stream, const comm::Mark& mark) override {
    device::wait(of(stream), dynamic_cast<const TestMark&>(mark).event());
  }
  void* exchange_handle() override { return exchange_; }
  std::shared_ptr<void> take(std::int64_t bytes) override {
    enter();
    auto* const before = device::current_stream(device_);
    device::set_current_stream(exchange_);
    void* const taken = device::allocate(bytes);
    device::set_current_stream(before);
    return {taken, device::give_back};
  }
  void sum_rows(void* rows, int parts, std::int64_t count, comm::Type type, void* sum) override {
    const auto row_bytes = count * comm::size_of(type);
    device::give(exchange_, {{rows, parts * row_bytes, true}, {sum, row_bytes, true}}, [=] {
      std::vector<const void*> all;
      for (int row = 0; row < parts; ++row) all.push_back(device::reached(rows) + row * row_bytes);
      comm::sum_in_order(all, count, type, device::reached(sum));
    });
  }

 private:
  device::Stream* of(comm::Stream stream) const {
    return stream == comm::Stream::exchange ? exchange_ : device::current_stream(device_);
  }

  int device_;
  device::Stream* exchange_;
};

/// Memory of a device, as long as the object lives.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(std::int64_t bytes) : data_(device::allocate(bytes), device::give_back) {}
  void* get() const { return data_.get(); }

 private:
  std::shared_ptr<void> data_;
};

}  // namespace retort::test
