#pragma once
// A file is read from its beginning and more than once.  A named pipe would have its reader wait for ever,
// and a device has no end.

#include <string>

#include "retort/base/files.h"

namespace retort::base {

/// What stands there in place of a file, for example "is a named pipe, expected a file; write ... to a file
/// and give that"; empty for a file and for what is not there.
std::string why_no_file(const Path& path);

/// The same of text that is read once: what this process was given open, as /dev/stdin or /dev/fd/N, will do,
/// and a terminal.
std::string why_no_text(const Path& path);

}  // namespace retort::base
