#pragma once
// A stage's working folder: what is there belongs to one identity, of model, text and options.

#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::record {

/// Whether there is something of this identity to go on with.
bool is_scratch_of(const base::Path& scratch, const base::Json& identity);

/// Enters `scratch` to go on with what is there of the same identity; anything else is removed, and so are
/// the directories `results` with it.  All of them exist afterwards, without what unfinished writes left.
/// Throws StorageError.
void enter_scratch(const base::Path& scratch, const base::Json& identity,
                   const std::vector<base::Path>& results = {});

}  // namespace retort::record
