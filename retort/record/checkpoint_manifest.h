#pragma once
// manifest.json of a training checkpoint: what each file of it holds, and what the files must be.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::record {

inline constexpr const char* kManifest = "manifest.json";
/// Formats: one file; a part of each of several ranks.
inline constexpr int kWholeCheckpoint = 1, kCheckpointParts = 2;

/// A file of a checkpoint.
struct CheckpointPart {
  std::string file, xxh128;
  std::vector<std::array<std::int64_t, 2>> ranges;  ///< [first element, number of elements] of each unit
};

/// Writes the manifest of a checkpoint of one part or several, with the keys of `head` in it.  Throws
/// StorageError.
void write_manifest(const base::Path& checkpoint, const base::Json& head,
                    const std::vector<CheckpointPart>& parts);

/// Reads a manifest of any number of ranks and units.  Throws ModelError where it is damaged or of another
/// format, StorageError where it cannot be read.
base::Json read_manifest(const base::Path& checkpoint);

}  // namespace retort::record
