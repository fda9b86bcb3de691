#pragma once
// JSON files that Retort itself wrote: they are read however long they got.

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::base {

/// No file that Retort writes comes near it; what is longer is something else.
inline constexpr std::size_t kMostOwnJsonBytes = std::size_t{1} << 28;

/// Parses a text that Retort wrote; throws JsonFault.
Json parse_own_json(std::string_view text);
/// Reads a file that Retort wrote; throws StorageError (cannot be read), DataError (too long) or JsonFault.
Json read_own_json(const Path& path);

}  // namespace retort::base
