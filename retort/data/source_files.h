#pragma once
// The files of a source.

#include <string>
#include <vector>

#include "retort/base/files.h"

namespace retort::data {

/// Expands file names and globs (with {a,b}); a glob's matches in byte order, no file twice.  Throws
/// DataError that names the source when one of them matches no file.
std::vector<base::Path> expand_paths(const std::string& source, const std::vector<std::string>& patterns);

}  // namespace retort::data
