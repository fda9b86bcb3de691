#include "retort/shard/accelerator.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "retort/base/error.h"

namespace retort::shard {
namespace {

using comm::Stream;

class TorchMark final : public comm::Mark {
 public:
  explicit TorchMark(const c10::Stream& stream)
      : event_(stream.device_type(), c10::EventFlag::BACKEND_DEFAULT) {
    event_.record(stream);
  }
  bool reached() const override { return event_.query(); }
  double seconds_since(const comm::Mark& earlier) const override {
    return dynamic_cast<const TorchMark&>(earlier).event_.elapsedTime(event_) * 1e-3;
  }
  void hold_up(const c10::Stream& stream) const { event_.block(stream); }

 private:
  c10::Event event_;
};

at::ScalarType scalar_type(comm::Type type) {
  constexpr at::ScalarType kTypes[] = {at::kByte, at::kBFloat16, at::kFloat, at::kDouble};
  return kTypes[static_cast<int>(type)];
}

class TorchAccelerator final : public comm::Accelerator {
 public:
  explicit TorchAccelerator(at::Device device)
      : device_(device),
        guard_(device.type()),
        exchange_(device.is_cpu() ? guard_.getStream(device) : guard_.getStreamFromGlobalPool(device)) {}

  // Copies between devices wait for what was queued before, and return when they are done.
  void to_host(void* host, const void* device, std::int64_t bytes) override {
    at_host(host, bytes).copy_(at_device(device, bytes, at::kByte));
  }
  void to_device(void* device, const void* host, std::int64_t bytes) override {
    at_device(device, bytes, at::kByte).copy_(at_host(host, bytes));
  }

  void enter() override { guard_.setDevice(device_); }
  std::shared_ptr<comm::Mark> mark(Stream stream) override { return std::make_shared<TorchMark>(of(stream)); }
  void wait(Stream stream, const comm::Mark& mark) override {
    dynamic_cast<const TorchMark&>(mark).hold_up(of(stream));
  }
  void* exchange_handle() override { return exchange_.native_handle(); }

  // libtorch's allocators give memory to a stream, and to another one only when that is done with it.
  std::shared_ptr<void> take(std::int64_t bytes) override {
    const c10::StreamGuard on(exchange_);
    const auto taken = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(device_));
    return {taken.data_ptr(), [taken](void*) {}};
  }

  void sum_rows(void* rows, int parts, std::int64_t count, comm::Type type, void* sum) override {
    const c10::StreamGuard on(exchange_);
    const auto scalar = scalar_type(type);
    const auto rows_RN = at_device(rows, parts * count, scalar).view({parts, count});
    const auto sum_N = at_device(sum, count, scalar);
    const auto total_N = scalar == at::kBFloat16 ? rows_RN[0].to(at::kFloat) : rows_RN[0];
    for (int row = 1; row < parts; ++row) total_N.add_(rows_RN[row]);
    sum_N.copy_(total_N);
  }

 private:
  c10::Stream of(Stream stream) const {
    return stream == Stream::exchange ? exchange_ : guard_.getStream(device_);
  }
  // Memory that others own.
  at::Tensor at_device(const void* data, std::int64_t count, at::ScalarType type) const {
    return at::from_blob(const_cast<void*>(data), {count}, at::TensorOptions().dtype(type).device(device_));
  }
  static at::Tensor at_host(const void* data, std::int64_t bytes) {
    return at::from_blob(const_cast<void*>(data), {bytes}, at::TensorOptions().dtype(at::kByte));
  }

  at::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream exchange_;
};

}  // namespace

std::shared_ptr<comm::Accelerator> accelerator_of(at::Device device) {
  return std::make_shared<TorchAccelerator>(device);
}

}  // namespace retort::shard
