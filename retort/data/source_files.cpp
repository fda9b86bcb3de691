#include "retort/data/source_files.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>
#include <unordered_set>

#include "retort/base/error.h"

namespace retort::data {
namespace {

constexpr std::size_t kMaxPatternBytes = 4096;  // longer paths cannot exist
constexpr std::size_t kMaxAlternatives = 4096;
constexpr std::size_t kMaxBraces = 64;  // glob(3) calls itself for each
// How many patterns {a,b}{c,d} stands for, at most.
std::size_t alternatives_of(const std::string& pattern) {
  std::vector<std::size_t> open;
  std::size_t all = 1, braces = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\')
      ++i;
    else if (pattern[i] == '{')
      open.push_back(1);
    else if (pattern[i] == ',' && !open.empty())
      ++open.back();
    else if (pattern[i] == '}' && !open.empty()) {
      all *= std::min(open.back(), kMaxAlternatives + 1);
      if (all > kMaxAlternatives || ++braces > kMaxBraces) return kMaxAlternatives + 1;
      open.pop_back();
    }
  }
  return all;
}

// glob(3) hands nothing to the functions through which it looks at folders.
thread_local std::size_t looks_left = 0;

bool may_look() {
  return looks_left > 0 && --looks_left > 0;
}

struct CountedGlob : glob_t {
  CountedGlob() : glob_t{} {
    gl_opendir = [](const char* path) -> void* { return may_look() ? ::opendir(path) : nullptr; };
    gl_readdir = [](void* folder) { return may_look() ? ::readdir(static_cast<DIR*>(folder)) : nullptr; };
    gl_closedir = [](void* folder) { ::closedir(static_cast<DIR*>(folder)); };
    gl_lstat = [](const char* path, struct stat* found) { return may_look() ? ::lstat(path, found) : -1; };
    gl_stat = [](const char* path, struct stat* found) { return may_look() ? ::stat(path, found) : -1; };
  }
};

// Ends a search that has nothing left to look with; other folders that cannot be read are passed over.
int ends_search(const char*, int) {
  return looks_left == 0 ? 1 : 0;
}

// glob(3) sorts by the locale; here the order must be the same everywhere.
std::vector<std::string> glob_matches(const std::string& source, const std::string& pattern) {
  base::require<base::DataError>(
      pattern.size() <= kMaxPatternBytes && alternatives_of(pattern) <= kMaxAlternatives, "source '", source,
      "': expected patterns of at most ", kMaxPatternBytes, " bytes, ", kMaxBraces, " braces and ",
      kMaxAlternatives, " alternatives, found one with more; give the files as a list.");
  CountedGlob found;
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_BRACE | GLOB_ALTDIRFUNC, ends_search, &found);
  std::vector<std::string> matches;
  for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i) matches.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status == GLOB_NOSPACE) throw std::bad_alloc();
  base::require<base::DataError>(
      looks_left > 0, "source '", source, "': '", pattern,
      "' leads to more files and folders than any source has; give one with fewer *.");
  std::erase_if(matches, [](const std::string& match) {
    std::error_code ignored;
    return !std::filesystem::exists(match, ignored) || std::filesystem::is_directory(match, ignored);
  });
  std::sort(matches.begin(), matches.end());
  return matches;
}

}  // namespace

std::vector<base::Path> expand_paths(const std::string& source, const std::vector<std::string>& patterns,
                                     std::size_t max_looks) {
  base::require<base::DataError>(!patterns.empty(), "source '", source,
                                 "': expected files, found no path; name files or a glob.");
  std::vector<base::Path> files;
  std::unordered_set<std::string> seen;
  looks_left = max_looks;
  for (const std::string& pattern : patterns) {
    std::error_code ignored;
    base::require<base::DataError>(!std::filesystem::is_directory(pattern, ignored), "source '", source,
                                   "': expected files, found the directory '", pattern,
                                   "'; name its files, for example '", pattern, "/*.txt'.");
    const bool exists = std::filesystem::exists(pattern, ignored);
    const auto matches = exists ? std::vector<std::string>{pattern} : glob_matches(source, pattern);
    base::require<base::DataError>(!matches.empty(), "source '", source, "': expected files at '", pattern,
                                   "', found none; check the path.");
    for (const std::string& match : matches)
      if (seen.insert(match).second) files.emplace_back(match);
  }
  return files;
}

}  // namespace retort::data
