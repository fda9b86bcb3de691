#pragma once
// A stage's working folder: what is there belongs to one identity, of model, text and options.

#include <functional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::record {

/// Whether there is something of this identity to go on with.
bool is_scratch_of(const base::Path& scratch, const base::Json& identity);

/// Enters `scratch` to go on with what is there of the same identity.  What stages wrote there, and in
/// `results`, of another identity is removed; files of other names stay.  All directories exist afterwards,
/// without what unfinished writes left.  Throws StorageError.
void enter_scratch(const base::Path& scratch, const base::Json& identity,
                   const std::vector<base::Path>& results = {});

/// Times that `measure` returned before, where `directory` has them of this identity, else what it returns
/// now. An empty path keeps nothing.  Throws StorageError, and what `measure` throws.
base::Json kept_times(const base::Path& directory, const base::Json& identity,
                      const std::function<base::Json()>& measure);

/// Removes what bears a name that `is_ours` knows, and the directory if it is then empty.  What else lies
/// there stays.  Throws StorageError with the cause.
void remove_ours(const base::Path& directory, const std::function<bool(const std::string& name)>& is_ours);

/// Removes what stages write into a working folder, and the folder if nothing else is in it.  Throws
/// StorageError.
void remove_scratch(const base::Path& scratch);

}  // namespace retort::record
