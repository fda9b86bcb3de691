#pragma once
// Writing GGUF files, version 3, little-endian: what gguf.h reads.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "retort/io/gguf_blocks.h"
#include "retort/io/safetensors.h"

namespace retort::io {

/// A value of the metadata; its C++ type is its type in the file.
using GgufValue = std::variant<std::uint16_t, std::uint32_t, std::int32_t, float, bool, std::string,
                               std::vector<std::int32_t>, std::vector<float>, std::vector<std::string>>;
/// In the order of the file; keys are distinct.
using GgufEntries = std::vector<std::pair<std::string, GgufValue>>;

/// A tensor to be written; `produce` passes its blocks to the sink in order, in pieces of any size.
struct GgufTensorToWrite {
  std::string name;
  GgmlType type = GgmlType::f32;
  std::vector<std::int64_t> shape;  ///< slowest dimension first, as everywhere but in the file
  std::function<void(const ByteSink&)> produce;
};

/// Bytes of the tensor's blocks; throws ModelError where a row is no multiple of the type's block.
std::size_t gguf_bytes(const GgufTensorToWrite& tensor);

/// Writes a file that appears whole or not at all.  The same entries and tensors give the same bytes.  Throws
/// ModelError (as gguf_bytes()), StorageError, or InternalError when a producer does not give exactly its
/// bytes.
void write_gguf(const base::Path& path, const GgufEntries& entries,
                std::span<const GgufTensorToWrite> tensors);

/// As gguf-split: where the tensors need more than `max_bytes`, NAME-00001-of-0000N.gguf and so on beside
/// `path`, NAME.gguf; all metadata stand in the first.  Returns the files' paths in order.
std::vector<base::Path> write_gguf_parts(const base::Path& path, const GgufEntries& entries,
                                         std::span<const GgufTensorToWrite> tensors, std::size_t max_bytes);

}  // namespace retort::io
