#pragma once
// GGUF files, the container of llama.cpp: a magic, typed metadata, a table of tensors, then the tensors'
// bytes at aligned places.  A file is checked completely when it is opened; afterwards every access is inside
// the mapping.  Format: https://github.com/ggml-org/ggml, docs/gguf.md; versions 2 and 3, little-endian.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/json.h"
#include "retort/io/gguf_blocks.h"
#include "retort/io/mapped_file.h"

namespace retort::io {

/// Metadata by key.  32-bit floats stand with the shortest decimal that means them, as 1e-05.
using GgufMetadata = std::map<std::string, base::Json, std::less<>>;

/// Where a tensor lies: bytes [begin, begin + size) counted from the start of the data.
struct GgufTensor {
  GgmlType type = GgmlType::f32;
  std::vector<std::int64_t> shape;  ///< slowest dimension first, as everywhere but in the file
  std::size_t begin = 0;
  std::size_t size = 0;
};

struct GgufHeader {
  GgufMetadata metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;
  std::size_t data_start = 0;  ///< byte of the file where the tensors begin
};

/// Limits beyond those of the format; a file above them is refused.  kMaxTensors and kMaxHeaderBytes of
/// safetensors hold as well.
inline constexpr std::size_t kMaxGgufKeys = 65'536;
inline constexpr std::size_t kMaxGgufKeyBytes = 65'535;
inline constexpr std::size_t kMaxGgufEntries = std::size_t{1} << 23;  ///< of all lists of a file together
inline constexpr std::size_t kMaxGgufAlignment = std::size_t{1} << 20;
inline constexpr std::size_t kMaxGgufRank = 4;

/// Reads and checks the header of a whole file in memory; `where` names it in messages.  Throws ModelError.
GgufHeader parse_gguf(std::span<const std::byte> file, const std::string& where);

/// A GGUF file mapped read-only.
class GgufFile {
 public:
  /// Throws StorageError (cannot be read) or ModelError (not a sound GGUF file).
  static GgufFile open(const base::Path& path);

  const base::Path& path() const { return file_.path(); }
  const GgufMetadata& metadata() const { return header_.metadata; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return header_.tensors; }
  /// The stored bytes of one of its tensors, valid as long as this object lives.
  std::span<const std::byte> bytes(const GgufTensor& tensor) const;
  /// As MappedFile says.
  void check_unchanged() const { file_.check_unchanged(); }

 private:
  GgufFile(MappedFile file, GgufHeader header) : file_(std::move(file)), header_(std::move(header)) {}
  MappedFile file_;
  GgufHeader header_;
};

}  // namespace retort::io
