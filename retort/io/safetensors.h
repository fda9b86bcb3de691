#pragma once
// safetensors files: an 8-byte length, a JSON header, then the tensors' bytes without holes or overlap.
// A file is checked completely when it is opened; afterwards every access is inside the mapping.
// Format: https://github.com/huggingface/safetensors, "Format".

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/files.h"
#include "retort/io/dtype.h"
#include "retort/io/mapped_file.h"

namespace retort::io {

/// Where a tensor lies: bytes [begin, end) counted from the first byte after the header.
struct TensorInfo {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  std::map<std::string, std::string> metadata;
  std::size_t data_start = 0;  ///< byte of the file where the tensors begin
};

/// Limits beyond those of the format; a file above them is refused.
inline constexpr std::size_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxTensors = 200'000;
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxRank = 16;

/// Reads and checks the header of a whole file in memory; `where` names it in messages.  Throws ModelError.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& where);

/// A safetensors file mapped read-only.
class SafetensorsFile {
 public:
  /// Throws StorageError (cannot be read) or ModelError (not a sound safetensors file).
  static SafetensorsFile open(const base::Path& path);

  const base::Path& path() const { return file_.path(); }
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// The bytes of one tensor, valid as long as this object lives.  Throws ModelError when there is no such
  /// tensor.
  std::span<const std::byte> bytes(std::string_view name) const;
  /// As MappedFile says.
  void check_unchanged() const { file_.check_unchanged(); }

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}
  MappedFile file_;
  SafetensorsHeader header_;
};

using ByteSink = std::function<void(std::span<const std::byte>)>;

/// A tensor to be written; `produce` passes its bytes to the sink in order, in pieces of any size.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::function<void(const ByteSink&)> produce;
};

/// A tensor whose bytes are in memory already; `bytes` has to live until it is written.
TensorToWrite tensor_of_bytes(std::string name, Dtype dtype, std::vector<std::int64_t> shape,
                              std::span<const std::byte> bytes);

/// Product of the shape times the size of an item; throws ModelError on a negative extent or an overflow.
std::size_t tensor_bytes(std::string_view name, Dtype dtype, std::span<const std::int64_t> shape);

/// Writes a file that appears whole or not at all.  Same tensors and metadata give the same bytes: tensors
/// are sorted by item size (largest first) and name, metadata by key, and {"format": "pt"} is added.  Throws
/// StorageError, or InternalError when a producer does not give exactly the announced bytes.
void write_safetensors(const base::Path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace retort::io
