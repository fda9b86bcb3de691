#include "retort/base/regular_file.h"

#include <system_error>

#include "retort/base/error.h"

namespace retort::base {
namespace {

using std::filesystem::file_type;

// What others opened and gave to this process.
bool is_open_already(const Path& path) {
  const std::string& name = path.native();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

const char* name_of(file_type type) {
  switch (type) {
    case file_type::directory:
      return "a directory";
    case file_type::fifo:
      return "a pipe";
    case file_type::socket:
      return "a socket";
    case file_type::character:
    case file_type::block:
      return "a device";
    default:
      return nullptr;
  }
}

}  // namespace

std::string why_no_file(const Path& path) {
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  const char* found = name_of(type);
  if (!found) return {};
  const char* advice = type == file_type::directory ? "" : "; write what it gives to a file, and name that";
  return join("is ", found, ", expected a file", advice);
}

std::string why_no_text(const Path& path) {
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  if (type != file_type::directory && is_open_already(path)) return {};
  const auto why = why_no_file(path);
  return type == file_type::fifo ? why + ", or give it as standard input" : why;
}

}  // namespace retort::base
