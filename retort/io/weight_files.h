#pragma once
// The tensors of an open model under the names and in the order of Hugging Face, whatever the format of the
// files that hold them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/files.h"
#include "retort/io/dtype.h"

namespace retort::io {

/// What is known of a tensor without its values; valid as long as the WeightFiles live.
struct TensorHeader {
  Dtype dtype = Dtype::f32;
  std::span<const std::int64_t> shape;
  bool dequantised = false;  ///< stored in blocks of integers; `dtype` is that of the values made of them
};

/// A tensor of an open model; valid as long as the WeightFiles and this view live.
struct TensorView {
  Dtype dtype = Dtype::f32;
  std::span<const std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< of bytes that were made, and do not lie in a file as they are
};

/// Number of values by type of storage, for example {"Q4_1", 106168320}.
using StoredTypes = std::map<std::string, std::int64_t>;

/// Tensors of the files that are not read, by why.
using UnreadTensors = std::map<std::string, std::vector<std::string>>;

class WeightFiles {
 public:
  virtual ~WeightFiles() = default;

  /// All tensors, sorted by name.
  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  /// Throws ModelError when there is no such tensor; so does find().
  virtual TensorHeader header(std::string_view name) const = 0;
  virtual TensorView find(std::string_view name) const = 0;
  /// What the files say beside the tensors; the first file that has a key wins.
  virtual std::map<std::string, std::string> metadata() const = 0;
  /// Bytes of all tensors as they are stored.
  virtual std::size_t total_bytes() const = 0;
  virtual StoredTypes stored_types() const = 0;
  /// In the order of their names.
  virtual std::vector<base::Path> paths() const = 0;
  /// Those that names() leaves out, under the names in the files.
  virtual UnreadTensors unread() const { return {}; }
};

}  // namespace retort::io
