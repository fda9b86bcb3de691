#pragma once
// Files that a user names for a command to write: a file of his own is never replaced by them.

#include <functional>
#include <string_view>

#include "retort/base/files.h"

namespace retort::base {

/// Throws where the command may not write to `path`: UsageError where it holds a file that `is_own` does not
/// know by its first bytes (at most 4 KiB), StorageError where it is a directory.  Nothing, an empty file, a
/// pipe and a device may be written to.  `what` names what the command writes.
void require_replaceable(const Path& path, std::string_view what,
                         const std::function<bool(std::string_view beginning)>& is_own);

}  // namespace retort::base
