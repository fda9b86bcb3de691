#pragma once
// Memory that ranks exchange: where, how much, of what type.  Knows nothing of tensors.

#include <cstddef>
#include <cstdint>

#include "retort/base/words.h"

namespace retort::comm {

enum class Type { bytes, bf16, f32, f64 };
constexpr auto words_of(Type) {
  return base::words<Type::f64>("bytes", "bf16", "f32", "f64");
}
constexpr std::int64_t size_of(Type type) {
  constexpr std::int64_t kSizes[] = {1, 2, 4, 8};
  return kSizes[static_cast<int>(type)];
}

enum class Device { cpu, accelerator };

/// `count` values of `type` at `data`.
struct Buffer {
  void* data = nullptr;
  std::int64_t count = 0;
  Type type = Type::bytes;
  Device device = Device::cpu;

  std::int64_t bytes() const { return count * size_of(type); }
};

struct ConstBuffer {
  const void* data = nullptr;
  std::int64_t count = 0;
  Type type = Type::bytes;
  Device device = Device::cpu;

  ConstBuffer() = default;
  ConstBuffer(const void* values, std::int64_t number, Type of, Device where = Device::cpu)
      : data(values), count(number), type(of), device(where) {}
  ConstBuffer(const Buffer& buffer)  // NOLINT: what may be written may be read
      : data(buffer.data), count(buffer.count), type(buffer.type), device(buffer.device) {}

  std::int64_t bytes() const { return count * size_of(type); }
};

}  // namespace retort::comm
