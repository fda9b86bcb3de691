#pragma once
// JSON that holds its own checksum: a flipped bit is found also where the file still parses.

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::record {

inline constexpr const char* kChecksum = "checksum";

/// The object with `checksum`, XXH3-128 of everything else in it; of the values, not of how they are written.
base::Json with_checksum(base::Json object);
/// Whether the object has a checksum and it fits.
bool checksum_fits(const base::Json& object);

/// Writes an object with its checksum, whole or not at all.  Throws StorageError.
void write_checked_json(const base::Path& path, const base::Json& object);

}  // namespace retort::record
