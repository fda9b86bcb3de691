#include "retort/io/gguf_parts.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "retort/base/error.h"
#include "retort/io/files_inside.h"
#include "retort/io/gguf_metadata.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::ModelError;
using base::Path;
using base::require;

// split.no counts from 0.
struct Split {
  std::int64_t number = 0, count = 1, tensors = 0;
};

std::optional<Split> read_split(const GgufFile& file) {
  const std::string where = file.path().string();
  const MetadataReader in(file.metadata(), where);
  const auto count = in.count("split.count");
  if (!count || *count <= 1) return std::nullopt;
  require<ModelError>(*count <= kMaxGgufParts, where, ": split.count is ", *count, ", expected at most ",
                      kMaxGgufParts, ".");
  return Split{in.required_count("split.no"), *count, in.required_count("split.tensors.count")};
}

std::string ending(std::int64_t number, std::int64_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "-%05d-of-%05d.gguf", static_cast<int>(number + 1),
                static_cast<int>(count));
  return text;
}

// What comes before "-00001-of-0000N.gguf" in the name of the first part.
std::string stem_of(const Path& path, const Split& split) {
  const std::string name = path.filename().string(), first = ending(0, split.count);
  require<ModelError>(name.ends_with(ending(split.number, split.count)), path.string(), ": is part ",
                      split.number + 1, " of ", split.count, ", expected a name that ends in ",
                      quote(ending(split.number, split.count)), "; give the files their names back.");
  const std::string stem = name.substr(0, name.size() - first.size());
  require<ModelError>(split.number == 0, path.string(), ": is part ", split.number + 1, " of ", split.count,
                      ", expected the first; give ", quote(stem + first), ".");
  return stem;
}

void check_part(const GgufFile& part, const Split& expected, const GgufFile& first) {
  const std::string where = part.path().string();
  const auto found = read_split(part);
  require<ModelError>(found && found->number == expected.number && found->count == expected.count &&
                          found->tensors == expected.tensors,
                      where, ": is part ", found ? found->number + 1 : 1, " of ", found ? found->count : 1,
                      " of a model with ", found ? found->tensors : std::int64_t(part.tensors().size()),
                      " tensors, expected part ", expected.number + 1, " of ", expected.count, " and ",
                      expected.tensors, " tensors; give parts of one model.");
  for (const auto& [key, value] : part.metadata()) {
    const auto said = first.metadata().find(key);
    const bool of_split = key.starts_with("split.");
    require<ModelError>(of_split || said == first.metadata().end() || said->second == value, where,
                        ": metadata ", quote(key),
                        " differs from that of the first part; give parts of one "
                        "model.");
  }
}

}  // namespace

std::vector<GgufFile> open_gguf_parts(const Path& path) {
  std::error_code error;  // of a path that cannot be looked at, which opening it will say
  require<ModelError>(std::filesystem::exists(path, error) || error, path.string(),
                      ": no such file; give a GGUF file or the directory of a Hugging Face model.");
  std::vector<GgufFile> parts;
  parts.push_back(GgufFile::open(path));
  const auto split = read_split(parts.front());
  if (!split) return parts;
  const std::string stem = stem_of(path, *split);
  const Path directory = path.has_parent_path() ? path.parent_path() : Path(".");
  std::size_t tensors = parts.front().tensors().size();
  for (std::int64_t number = 1; number < split->count; ++number) {
    parts.push_back(GgufFile::open(resolve_inside(directory, stem + ending(number, split->count))));
    check_part(parts.back(), {number, split->count, split->tensors}, parts.front());
    tensors += parts.back().tensors().size();
  }
  require<ModelError>(static_cast<std::int64_t>(tensors) == split->tensors, path.string(),
                      ": the parts have ", tensors, " tensors, expected ", split->tensors,
                      "; give parts of one model.");
  return parts;
}

}  // namespace retort::io
