#pragma once
// The files of a source.

#include <cstddef>
#include <string>
#include <vector>

#include "retort/base/files.h"

namespace retort::data {

/// Files and entries of folders that are looked at for one source; in */../*/.. each part multiplies them.
inline constexpr std::size_t kMaxLooks = 10'000'000;

/// Expands file names and globs (with {a,b}); a glob's matches in byte order, no file twice.  Throws
/// DataError that names the source when one of them matches no file, or leads to more than `max_looks`.
std::vector<base::Path> expand_paths(const std::string& source, const std::vector<std::string>& patterns,
                                     std::size_t max_looks = kMaxLooks);

}  // namespace retort::data
