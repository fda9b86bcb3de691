#include "retort/io/files_inside.h"

#include <algorithm>
#include <filesystem>

#include "retort/base/error.h"
#include "retort/io/quote.h"
#include "retort/io/recognise.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::ModelError;
using base::Path;
using base::require;

// Empty where the directory is not in a snapshot of the Hugging Face cache.
Path cache_blobs(const Path& canonical_directory) {
  for (Path below = canonical_directory; below.has_relative_path(); below = below.parent_path()) {
    const Path snapshots = below.parent_path(), root = snapshots.parent_path();
    if (snapshots.filename() == "snapshots" && root.filename().string().starts_with("models--"))
      return root / "blobs";
  }
  return {};
}

}  // namespace

bool is_basename(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string_view::npos &&
         text.find('\0') == std::string_view::npos;
}

bool entry_exists(const Path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

std::string how_to_get(const Path& directory) {
  const auto name = directory.string();
  const bool is_of_hub = std::count(name.begin(), name.end(), '/') == 1 && name.front() != '.' &&
                         name.front() != '/' && name.back() != '/' && !fs::exists(directory.parent_path());
  return is_of_hub ? base::join("a model of the Hugging Face hub is fetched by: hf download ", name,
                                " --local-dir DIRECTORY")
                   : "give the directory of a Hugging Face model or a GGUF file";
}

Path resolve_inside(const Path& directory, std::string_view name) {
  return resolve_inside(directory, "", name);
}

Path resolve_inside(const Path& directory, const char* folder, std::string_view name) {
  const std::string who = base::join((directory / folder).string(), ": file ", quote(name));
  require<ModelError>(is_basename(name), who,
                      " is not a plain file name; files of a model lie in its own directory.");
  std::error_code error;
  const Path root = fs::canonical(directory, error);
  require<ModelError>(!error, directory.string(), ": no such directory (", error.message(), "); ",
                      how_to_get(directory), ".");
  const Path place = *folder == 0 ? root : root / folder;
  const Path resolved = fs::canonical(place / name, error);
  require<ModelError>(!error, who, " is missing or its link leads nowhere (", error.message(),
                      "); complete the model directory.");
  const Path blobs = cache_blobs(root);
  const bool inside = resolved.parent_path() == place || (!blobs.empty() && resolved.parent_path() == blobs);
  require<ModelError>(inside, who, " leads to ", quote(resolved.string()),
                      ", outside the model directory; copy the file into it if you trust it.");
  require<ModelError>(fs::is_regular_file(resolved, error), who,
                      " is not a regular file; complete the model directory.");
  return resolved;
}

std::string read_small_file(const Path& path, std::size_t max_bytes) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  require<ModelError>(!error && size <= max_bytes, path.string(), ": ", error ? 0 : size,
                      " bytes, expected at most ", max_bytes,
                      "; this is not the file that its name promises.");
  std::string text = base::read_file(path, max_bytes);
  refuse_other_format(text, path.string(), "text");
  return text;
}

}  // namespace retort::io
