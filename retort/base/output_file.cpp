#include "retort/base/output_file.h"

#include <fstream>
#include <string>

#include "retort/base/error.h"

namespace retort::base {
namespace {

std::string beginning_of(const Path& path) {
  constexpr std::size_t kBytes = 4096;
  auto in = open_file(path);
  std::string beginning(kBytes, '\0');
  in.read(beginning.data(), kBytes);
  require_was_read(in, path);
  beginning.resize(static_cast<std::size_t>(in.gcount()));
  return beginning;
}

}  // namespace

void require_replaceable(const Path& path, std::string_view what,
                         const std::function<bool(std::string_view beginning)>& is_own) {
  std::error_code ignored;
  require<StorageError>(!std::filesystem::is_directory(path, ignored), path.string(),
                        ": is a directory, expected the name of a file.");
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  const auto beginning = beginning_of(path);
  require<UsageError>(beginning.empty() || is_own(beginning), path.string(), ": holds something else than ",
                      what, ", and would be replaced; name another file, or remove this one.");
}

}  // namespace retort::base
