#pragma once
// Numbers and lists of them as bytes, for ranks of one kind of machine to send each other.

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "retort/base/error.h"

namespace retort::base {

template <typename Number>
requires std::is_trivially_copyable_v<Number>
void put_bytes(std::string& bytes, const Number& number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}
/// With its length.
template <typename Number>
void put_bytes(std::string& bytes, const std::vector<Number>& list) {
  static_assert(std::is_trivially_copyable_v<Number>);
  put_bytes(bytes, list.size());
  bytes.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(Number));
}

/// Reads what was put, in the same order.  Throws InternalError where the bytes end too early.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  template <typename Number>
  requires std::is_trivially_copyable_v<Number>
  void get(Number& number) { get(&number, sizeof number); }
  template <typename Number>
  void get(std::vector<Number>& list) {
    std::size_t size = 0;
    get(size);
    ensure(size <= bytes_.size() / sizeof(Number), "lists arrive as they were sent");
    list.resize(size);
    get(list.data(), size * sizeof(Number));
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  void get(void* data, std::size_t size) {
    ensure(size <= bytes_.size(), "numbers arrive as they were sent");
    if (size > 0) std::memcpy(data, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }
  std::string_view bytes_;
};

}  // namespace retort::base
