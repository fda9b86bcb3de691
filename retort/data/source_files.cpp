#include "retort/data/source_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>
#include <unordered_set>

#include "retort/base/error.h"

namespace retort::data {
namespace {

// glob(3) sorts by the locale; here the order must be the same everywhere.
std::vector<std::string> glob_matches(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_BRACE, nullptr, &found);
  std::vector<std::string> matches;
  for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i) matches.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status == GLOB_NOSPACE) throw std::bad_alloc();
  std::erase_if(matches, [](const std::string& match) {
    std::error_code ignored;
    return !std::filesystem::exists(match, ignored) || std::filesystem::is_directory(match, ignored);
  });
  std::sort(matches.begin(), matches.end());
  return matches;
}

}  // namespace

std::vector<base::Path> expand_paths(const std::string& source, const std::vector<std::string>& patterns) {
  base::require<base::DataError>(!patterns.empty(), "source '", source,
                                 "': expected files, found no path; name files or a glob.");
  std::vector<base::Path> files;
  std::unordered_set<std::string> seen;
  for (const std::string& pattern : patterns) {
    std::error_code ignored;
    base::require<base::DataError>(!std::filesystem::is_directory(pattern, ignored), "source '", source,
                                   "': expected files, found the directory '", pattern,
                                   "'; name its files, for example '", pattern, "/*.txt'.");
    const bool exists = std::filesystem::exists(pattern, ignored);
    const auto matches = exists ? std::vector<std::string>{pattern} : glob_matches(pattern);
    base::require<base::DataError>(!matches.empty(), "source '", source, "': expected files at '", pattern,
                                   "', found none; check the path.");
    for (const std::string& match : matches)
      if (seen.insert(match).second) files.emplace_back(match);
  }
  return files;
}

}  // namespace retort::data
