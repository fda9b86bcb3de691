#pragma once
// Files of a model directory.  A link in it may lead to another file of the directory, nowhere else: else a
// model that was fetched could have any file of its reader opened, and copied beside what is made of it.
//
// The Hugging Face cache keeps a model as links, models--X/snapshots/REVISION/FILE to models--X/blobs/HASH.
// From a directory below models--X/snapshots, links may therefore lead into models--X/blobs too.  A link to
// the directory itself may lie anywhere.

#include <cstddef>
#include <string>
#include <string_view>

#include "retort/base/files.h"

namespace retort::io {

/// What to do where a model is not there, without a full stop: a name such as HuggingFaceTB/SmolLM2-135M is
/// fetched first.
std::string how_to_get(const base::Path& directory);

/// `name` inside `directory`, with links followed.  Throws ModelError unless the result is a regular file
/// where links may lead.  All files of a model directory are opened by what this returns.
base::Path resolve_inside(const base::Path& directory, std::string_view name);
/// The same of a file in a folder of the directory.
base::Path resolve_inside(const base::Path& directory, const char* folder, std::string_view name);

/// Whether `text` can name a file without leading out of its directory.
bool is_basename(std::string_view text);
/// Whether there is anything of this name, be it a link that leads nowhere.
bool entry_exists(const base::Path& path);
/// A file of at most `max_bytes`; throws ModelError for a larger one.
std::string read_small_file(const base::Path& path, std::size_t max_bytes);

}  // namespace retort::io
