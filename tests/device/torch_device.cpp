// Memory, streams and events are the test device's.  An operation copies what it takes to the processor,
// computes there and copies its result back, all in the order of the current stream.
#include "device/torch_device.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "device/test_device.h"

namespace retort::test {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

// `same`: each process sees one device, which is that of all; `own`: each rank sees one of its own.
constexpr const char* kSeen = "RETORT_TEST_DEVICE_SEEN";

// libtorch knows a stream by a number.  0 is the default stream.
class Streams {
 public:
  c10::Stream known(device::Stream* stream) {
    const auto number = device::device_of(stream);
    const std::scoped_lock lock(mutex_);
    if (stream == device::default_stream(number)) return named(number, 0);
    auto& others = others_[number];
    auto found = std::ranges::find(others, stream);
    if (found == others.end()) found = others.insert(others.end(), stream);
    return named(number, found - others.begin() + 1);
  }
  device::Stream* of(const c10::Stream& stream) {
    const std::scoped_lock lock(mutex_);
    if (stream.id() == 0) return device::default_stream(stream.device_index());
    return others_[stream.device_index()].at(static_cast<std::size_t>(stream.id() - 1));
  }

 private:
  static c10::Stream named(int number, std::int64_t id) {
    return c10::Stream(c10::Stream::UNSAFE, torch_device(number), id);
  }
  std::mutex mutex_;
  std::map<int, std::vector<device::Stream*>> others_;
};

Streams& streams() {
  static auto* const kStreams = new Streams;
  return *kStreams;
}

using EventOfDevice = std::shared_ptr<device::Event>;
const EventOfDevice& event_of(void* event) {
  return *static_cast<EventOfDevice*>(event);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device next) const override {
    const auto before = getDevice();
    setDevice(next);
    return before;
  }
  c10::Device getDevice() const override { return torch_device(device::current_device()); }
  void setDevice(c10::Device next) const override { uncheckedSetDevice(next); }
  void uncheckedSetDevice(c10::Device next) const noexcept override {
    if (next.has_index()) device::set_current_device(next.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return std::getenv(kSeen) ? 1 : device::kDevices; }

  c10::Stream getStream(c10::Device of) const override {
    return streams().known(device::current_stream(index_of(of)));
  }
  c10::Stream getDefaultStream(c10::Device of) const override {
    return streams().known(device::default_stream(index_of(of)));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool) const override { return getNewStream(of, 0); }
  c10::Stream getNewStream(c10::Device of, int) const override {
    return streams().known(device::new_stream(index_of(of)));
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const auto before = getStream(next.device());
    device::set_current_stream(streams().of(next));
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return streams().of(stream); }
  bool queryStream(const c10::Stream& stream) const override {
    return device::has_been_reached(*device::record(streams().of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    device::synchronize(streams().of(stream));
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    device::synchronize(device::current_stream(index));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    auto recorded = device::record(streams().of(stream));
    if (*event)
      *static_cast<EventOfDevice*>(*event) = std::move(recorded);
    else
      *event = new EventOfDevice(std::move(recorded));
  }
  void block(void* event, const c10::Stream& stream) const override {
    device::wait(streams().of(stream), event_of(event));
  }
  bool queryEvent(void* event) const override { return device::has_been_reached(*event_of(event)); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<EventOfDevice*>(event);
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    return 1e3 * (device::reached_at_seconds(*event_of(to)) - device::reached_at_seconds(*event_of(from)));
  }

 private:
  static int index_of(c10::Device of) { return of.has_index() ? of.index() : device::current_device(); }
};

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, torch_device(device::current_device())};
    void* data = device::allocate(static_cast<std::int64_t>(bytes));
    return {data, data, device::give_back, torch_device(device::current_device())};
  }
  c10::DeleterFnPtr raw_deleter() const override { return device::give_back; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "memory of the test device is copied by tensors");
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    auto& bytes = stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    bytes.current = device::live_bytes(index);
    bytes.peak = device::peak_bytes(index);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex index) override { device::reset_peak_bytes(index); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex index) override {
    return {static_cast<std::size_t>(device::kDeviceBytes - device::live_bytes(index)),
            static_cast<std::size_t>(device::kDeviceBytes)};
  }
};

DeviceAllocator& allocator() {
  static DeviceAllocator allocator;
  return allocator;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  at::Device getDeviceFromPtr(void* data) const override {
    return torch_device(device::device_of_memory(data));
  }
};

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> of, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(of);
  return at::detail::empty_generic(size, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> of, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(of);
  return at::detail::empty_strided_generic(size, stride, &allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

// The bytes from a tensor's first element to its last.
device::Use use_of(const at::Tensor& x, bool writes) {
  std::int64_t last = 0;
  for (std::int64_t axis = 0; axis < x.dim(); ++axis) last += (x.size(axis) - 1) * x.stride(axis);
  return {x.const_data_ptr(), (last + 1) * static_cast<std::int64_t>(x.element_size()), writes};
}

// As work on a stream sees it.
at::Tensor as_reached(const void* data, bool on_device, const std::vector<std::int64_t>& sizes,
                      const std::vector<std::int64_t>& strides, at::ScalarType type) {
  void* place = on_device ? device::reached(data) : const_cast<void*>(data);
  return at::from_blob(place, sizes, strides, at::TensorOptions().dtype(type));
}

void copy_in_order(const at::Tensor& from, const at::Tensor& to, bool waits = true) {
  if (from.numel() == 0) return;
  const bool from_device = !from.is_cpu(), to_device = !to.is_cpu();
  std::vector<device::Use> uses;
  if (from_device) uses.push_back(use_of(from, false));
  if (to_device) uses.push_back(use_of(to, true));
  auto* const stream = device::current_stream((to_device ? to : from).device().index());
  device::give(stream, uses,
               [held = from.is_cpu() ? from : at::Tensor(), source = from.const_data_ptr(),
                target = to.mutable_data_ptr(), from_device, to_device, from_sizes = from.sizes().vec(),
                from_strides = from.strides().vec(), from_type = from.scalar_type(),
                to_sizes = to.sizes().vec(), to_strides = to.strides().vec(), to_type = to.scalar_type()] {
                 as_reached(target, to_device, to_sizes, to_strides, to_type)
                     .copy_(as_reached(source, from_device, from_sizes, from_strides, from_type));
               });
  if (waits && (!from_device || !to_device)) device::synchronize(stream);
}

// As a driver does, what is not waited for goes to the device from a copy of its own.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const auto values = from.expand(to.sizes());
  const bool waits = !non_blocking || !values.is_cpu();
  copy_in_order(waits ? values : values.clone(), to, waits);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  copy_in_order(from, to);
  return to;
}

at::Scalar local_scalar_dense(const at::Tensor& x) {
  return at::_local_scalar_dense(x.to(at::kCPU));
}

const at::Tensor& resize(const at::Tensor& x, at::SymIntArrayRef size, std::optional<at::MemoryFormat>) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (x.sizes() == sizes) return x;  // a view keeps its strides
  auto* const impl = x.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const auto bytes = static_cast<std::size_t>(impl->storage_offset() + impl->numel()) * x.element_size();
  TORCH_CHECK(x.storage().nbytes() >= bytes || x.storage().nbytes() == 0, "a resize that keeps nothing");
  if (x.storage().nbytes() < bytes) {
    const c10::DeviceGuard guard(x.device());
    x.storage().set_data_ptr_noswap(allocator().allocate(bytes));
    x.storage().set_nbytes(bytes);
  }
  return x;
}

at::Tensor reshape_alias(const at::Tensor& x, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(x, size, stride, x.storage_offset());
}

at::Tensor& set_source(at::Tensor& x, at::Storage source, std::int64_t offset, at::IntArrayRef size,
                       at::IntArrayRef stride) {
  auto* const impl = x.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(size, stride);
  return x;
}

void by_the_processor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const device::Kernel kernel;
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

}  // namespace

c10::Device torch_device(int number) {
  return {kType, static_cast<c10::DeviceIndex>(number)};
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);
REGISTER_ALLOCATOR(kType, &allocator());
const bool kNamed = [] {
  c10::register_privateuse1_backend("testdevice");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage_storage_offset", set_source);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar_dense);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_processor>());
}

}  // namespace retort::test

// As CUDA's driver has it.
extern "C" int cuDeviceGetUuid_v2(char* uuid, int device) {
  const char* seen = std::getenv(retort::test::kSeen);
  const char* rank = std::getenv("RETORT_RANK");
  const bool own = seen && std::string_view(seen) == "own" && rank;
  uuid[0] = static_cast<char>(1 + (own ? std::atoi(rank) : device));
  return 0;
}
