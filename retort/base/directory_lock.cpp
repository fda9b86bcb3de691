#include "retort/base/directory_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/file_system.h"
#include "retort/base/machine.h"

namespace retort::base {
namespace {

bool is_without_locks(int code) {
  return code == ENOLCK || code == ENOSYS || code == EOPNOTSUPP;
}

// Closed also where the constructor throws.
struct Opened {
  int descriptor;
  ~Opened() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

constexpr std::string_view kHolder = "pid ";

std::string text_of(int descriptor) {
  char text[64] = {};
  return ::pread(descriptor, text, sizeof text - 1, 0) > 0 ? text : "";
}

// What is written over must be of an earlier process that worked here: another program may have a file
// `lock`.
bool is_own(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  return status.st_size == 0 || text_of(descriptor).starts_with(kHolder);
}

}  // namespace

DirectoryLock::DirectoryLock(const Path& directory) {
  const Path path = directory / "lock";
  // A link would lead to a file of somebody else; O_NONBLOCK: a pipe would wait.
  Opened file{file_system().open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)};
  require<StorageError>(
      file.descriptor >= 0 || errno != ELOOP, path.string(),
      ": is a link, expected a file that a run made; move it away or choose another directory.");
  require<StorageError>(file.descriptor >= 0, path.string(), ": opening failed: ", system_message(errno),
                        ".");
  require<StorageError>(
      is_own(file.descriptor), path.string(),
      ": expected a file that a run made, found another; move it away or choose another directory.");
  const int code = file_system().lock(file.descriptor) == 0 ? 0 : errno;
  const auto text = text_of(file.descriptor);
  require<StorageError>(code != EWOULDBLOCK, directory.string(), ": another process (",
                        text.empty() ? "unknown" : text,
                        ") works in this directory; wait for it or choose another directory.");
  require<StorageError>(code == 0 || is_without_locks(code), path.string(),
                        ": locking failed: ", system_message(code), "; choose another directory.");
  // A file that stands for the lock would outlive a killed process, and on a cluster nobody can tell from
  // another host that it died: a job that is queued again could not go on.
  if (code != 0)
    warning_ = join(directory.string(), ": this file system has no locks (", system_message(code),
                    "), so a second process in this directory would not be noticed; start none, or mount it "
                    "with locks (Lustre: -o flock).");
  constexpr std::size_t kShown = 40;
  const std::string holder = join(kHolder, ::getpid(), " on ", host_name().substr(0, kShown));
  if (::ftruncate(file.descriptor, 0) != 0 ||
      file_system().write(file.descriptor, holder.data(), holder.size()) < 0)
    throw StorageError(join(path.string(), ": writing failed: ", system_message(errno), "."));
  std::swap(descriptor_, file.descriptor);
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace retort::base
