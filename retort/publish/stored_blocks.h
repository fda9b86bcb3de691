#pragma once
// The blocks of a tensor in a GGUF file, found by their values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "retort/io/dtype.h"
#include "retort/io/gguf_blocks.h"

namespace retort::publish {

/// How a model that was read from a file holds its values: less what the file adds, in its own type.
struct ValuesOfModel {
  io::Dtype dtype = io::Dtype::f32;  ///< f32, f16 or bf16
  float added = 0;                   ///< by the file to every value
};

class StoredBlocks {
 public:
  /// `bytes`: all rows of the tensor, each of `cols` values; they outlive this.
  StoredBlocks(io::GgmlType type, std::span<const std::byte> bytes, std::size_t cols, ValuesOfModel values);

  io::GgmlType type() const { return type_; }
  /// Values that are found together: a block, or a row of a type without blocks.
  std::size_t unit() const { return unit_; }
  /// The bytes of a unit whose values in the model are `values`, bit for bit; empty where the file has none,
  /// or they are not finite. Asked for units in the order of the file it gives those of the same places.
  std::span<const std::byte> find(std::span<const float> values);

 private:
  std::size_t size() const { return bytes_.size() / unit_bytes_; }
  std::span<const std::byte> at(std::size_t number) const;
  bool has_values(std::size_t number, std::span<const float> values);
  void read(std::size_t number);
  void index_all();

  io::GgmlType type_;
  std::span<const std::byte> bytes_;
  ValuesOfModel model_;
  std::size_t unit_, unit_bytes_;
  std::size_t next_ = 0;    // behind the last that was found
  std::vector<float> one_;  // values of the unit that was read last
  // The first unit with values of each hash; made when a unit is not at its place.
  std::optional<std::unordered_map<std::uint64_t, std::size_t>> by_hash_;
};

}  // namespace retort::publish
