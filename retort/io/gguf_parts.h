#pragma once
// The files of a model that llama.cpp's gguf-split has cut into NAME-00001-of-0000N.gguf and so on.

#include <cstdint>
#include <vector>

#include "retort/io/gguf.h"

namespace retort::io {

/// A model of more is refused, when it is read and when it is written.
inline constexpr std::int64_t kMaxGgufParts = 4096;

/// The file, or all parts of the split model of which it is the first, in order; the metadata stand in the
/// first.  Throws ModelError (a part is missing, of another model, or not the first is given) or
/// StorageError.
std::vector<GgufFile> open_gguf_parts(const base::Path& path);

}  // namespace retort::io
