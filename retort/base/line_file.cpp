#include "retort/base/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/file_system.h"

namespace retort::base {
namespace {

/// Bytes up to and with the last newline.
off_t whole_lines(int descriptor, off_t size) {
  char block[4096];
  while (size > 0) {
    const off_t start = size > off_t{sizeof block} ? size - off_t{sizeof block} : 0;
    const ssize_t count = ::pread(descriptor, block, static_cast<std::size_t>(size - start), start);
    if (count <= 0) return size;
    for (ssize_t i = count; i > 0; --i)
      if (block[i - 1] == '\n') return start + i;
    size = start;
  }
  return 0;
}

}  // namespace

LineFile::LineFile(Path path)
    : path_(std::move(path)), descriptor_(file_system().open(path_, O_RDWR | O_CREAT | O_APPEND)) {
  require<StorageError>(descriptor_ >= 0, path_.string(),
                        ": cannot be opened for writing: ", system_message(errno), ".");
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return;
  const off_t whole = whole_lines(descriptor_, status.st_size);
  if (whole == status.st_size || ::ftruncate(descriptor_, whole) == 0) return;
  const int code = errno;
  ::close(std::exchange(descriptor_, -1));
  throw StorageError(
      join(path_.string(), ": dropping a line that was cut off failed: ", system_message(code), "."));
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LineFile::LineFile(LineFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

LineFile& LineFile::operator=(LineFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

int LineFile::append(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  struct stat before {};
  const bool known = ::fstat(descriptor_, &before) == 0;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = file_system().write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int code = errno;
      // Half a line would spoil the next one.  Where even cutting fails, reading leaves the damaged line out.
      if (known && done > 0 && ::ftruncate(descriptor_, before.st_size) != 0) return code;
      return code;
    }
    done += static_cast<std::size_t>(written);
  }
  return 0;
}

int LineFile::sync() {
  // EINVAL: a file without a disk behind it, which has nothing to be made durable.
  return file_system().sync(descriptor_) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace retort::base
