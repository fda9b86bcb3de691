#pragma once
// What the harnesses share.  Each has LLVMFuzzerTestOneInput, which libFuzzer calls with one input after
// another.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/files.h"

namespace retort::fuzz {

/// A folder for the files of this process, which goes at its end.
inline const base::Path& folder() {
  static const base::Path path = [] {
    static std::string pattern = (std::filesystem::temp_directory_path() / "retort-fuzz-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(pattern, ignored);
    });
    return std::filesystem::canonical(pattern);
  }();
  return path;
}

inline void write(const base::Path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// What must be so whatever the input.
inline void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

/// Whether `read` took its input.  A refusal is an error of the library for others' files; everything else
/// that is thrown ends the process, which libFuzzer reports.
template <typename Read>
bool taken(const Read& read) {
  try {
    read();
    return true;
  } catch (const base::Error& error) {
    require(error.code() != base::ExitCode::internal, error.what());
    require(*error.what() != '\0', "a refusal says why");
    return false;
  }
}

}  // namespace retort::fuzz
