#include "retort/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/file_system.h"
#include "retort/base/regular_file.h"

namespace retort::base {
namespace {

constexpr std::string_view kTemporaryMark = ".unfinished-";
constexpr std::string_view kOldMark = "-old";  // of what steps aside

Path temporary_name(const Path& path) {
  return path.parent_path() / join(".", path.filename().string(), kTemporaryMark, ::getpid());
}

[[noreturn]] void fail(const Path& path, const char* action, int code) {
  const char* advice =
      code == ENOSPC || code == EDQUOT ? "; free some space and start again, nothing was lost"
      : code == EFBIG ? "; raise the limit of file sizes (ulimit -f) and start again, nothing was lost"
                      : "";
  throw StorageError(join(path.string(), ": ", action, " failed: ", system_message(code), advice, "."));
}

// A device or pipe must not be replaced by a file; of a link the file behind it is.
bool is_written_in_place(const Path& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

// Of a link that leads nowhere yet, the place that it names: the file is made there, and the link stays.
Path behind_links(Path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int followed = 0; std::filesystem::is_symlink(path, error); ++followed) {
    const Path target = std::filesystem::read_symlink(path, error);
    if (error || followed == kMostLinks) fail(path, "following the link", error ? error.value() : ELOOP);
    path = path.parent_path() / target;
  }
  return path;
}

Path parent_of(const Path& path) {
  return path.has_parent_path() ? path.parent_path() : Path(".");
}

// A directory cannot be renamed over a filled one, but two can change places.  Where the file system cannot
// do that the old one has to step aside, and for a moment neither has the final name.
void put_in_place(const Path& temporary, const Path& old, const Path& final_path) {
  const bool replaces = std::filesystem::exists(final_path);
  if (replaces && file_system().exchange(temporary, final_path) == 0) return;
  if (replaces && file_system().rename(final_path, old) != 0) fail(final_path, "renaming", errno);
  if (file_system().rename(temporary, final_path) == 0) return;
  const int code = errno;
  if (replaces && file_system().rename(old, final_path) != 0)
    fail(old, "giving the old directory its name back", errno);
  fail(final_path, "renaming", code);
}

// What a name of an unfinished write says: ".name.unfinished-4711", and with "-old" what stepped aside for
// it.
struct Leftover {
  std::string name;
  bool stepped_aside = false;
};

// Nothing for any other name: users have files of their own.
std::optional<Leftover> leftover_of(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  const auto type = entry.symlink_status(ignored).type();
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::directory) return {};
  std::string name = entry.path().filename().string();
  const bool old = name.ends_with(kOldMark);
  if (old) name.resize(name.size() - kOldMark.size());
  const auto mark = name.rfind(kTemporaryMark);
  if (mark == std::string::npos || mark < 2 || name.front() != '.') return {};
  const auto process = name.substr(mark + kTemporaryMark.size());
  if (process.empty() || process.find_first_not_of("0123456789") != std::string::npos) return {};
  return Leftover{name.substr(1, mark - 1), old};
}

}  // namespace

std::ifstream open_file(const Path& path) {
  const auto why = why_no_file(path);
  require<StorageError>(why.empty(), path.string(), ": ", why, ".");
  std::ifstream in(path, std::ios::binary);
  require<StorageError>(in.is_open(), path.string(), ": cannot be opened: ", system_message(errno), ".");
  return in;
}

void require_was_read(const std::ifstream& in, const Path& path) {
  require<StorageError>(!in.bad(), path.string(), ": cannot be read: ", system_message(errno), ".");
}

std::string read_file(const Path& path, std::size_t max_bytes) {
  auto in = open_file(path);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  require<StorageError>(!error, path.string(), ": has no size: ", error.message(), ".");
  require<DataError>(size <= max_bytes, path.string(), ": ", size, " bytes, expected at most ", max_bytes,
                     ".");
  std::string content(size, '\0');
  in.read(content.data(), static_cast<std::streamsize>(size));
  require_was_read(in, path);
  content.resize(static_cast<std::size_t>(in.gcount()));
  return content;
}

AtomicFile::AtomicFile(Path path) {
  const bool in_place = is_written_in_place(path);
  path_ = in_place ? std::move(path) : behind_links(path);
  temporary_ = in_place ? path_ : temporary_name(path_);
  descriptor_ = file_system().open(temporary_, O_WRONLY | (in_place ? 0 : O_CREAT | O_TRUNC));
  if (descriptor_ < 0) fail(path_, "creating", errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (temporary_ != path_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* bytes, std::size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = file_system().write(descriptor_, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "writing", errno);
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  const bool in_place = temporary_ == path_;
  if (file_system().sync(descriptor_) != 0 && !(in_place && errno == EINVAL)) fail(path_, "syncing", errno);
  const int descriptor = std::exchange(descriptor_, -1);
  const bool closed = ::close(descriptor) == 0;
  if (in_place && closed) return;
  if (!closed || file_system().rename(temporary_, path_) != 0) {
    const int code = errno;
    if (!in_place) ::unlink(temporary_.c_str());
    fail(path_, "renaming", code);
  }
  sync_directory(parent_of(path_));
}

void write_file_atomically(const Path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

UnfinishedDirectory::UnfinishedDirectory(Path final_path)
    : final_path_(std::move(final_path)), temporary_(temporary_name(final_path_)) {
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
  std::filesystem::remove_all(temporary_.string() + std::string(kOldMark), ignored);
  make_directories(temporary_);
}

UnfinishedDirectory::~UnfinishedDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);  // after an exchange of names: the old directory
}

void UnfinishedDirectory::commit() try {
  const Path old = temporary_.string() + std::string(kOldMark);
  sync_directory(temporary_);
  put_in_place(temporary_, old, final_path_);
  sync_directory(parent_of(final_path_));
  std::error_code ignored;
  std::filesystem::remove_all(old, ignored);
} catch (const std::filesystem::filesystem_error& error) {
  fail(final_path_, "writing", error.code().value());
}

void write_directory_atomically(const Path& final_path, const std::function<void(const Path&)>& fill) try {
  UnfinishedDirectory directory(final_path);
  fill(directory.path());
  directory.commit();
} catch (const std::filesystem::filesystem_error& error) {
  fail(final_path, "writing", error.code().value());
}

void make_directories(const Path& path) {
  std::error_code error;
  std::vector<Path> missing;
  for (Path next = path; !next.empty() && !std::filesystem::exists(next, error); next = next.parent_path())
    missing.push_back(next);
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "creating the directory", error.value());
  // What is written into a directory is durable only where the directory is.
  for (const auto& created : missing) sync_directory(parent_of(created));
}

bool holds_files(const Path& directory) {
  std::error_code error;
  return std::filesystem::is_directory(directory, error) && !std::filesystem::is_empty(directory, error);
}

void remove_all(const Path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) fail(path, "removing", error.value());
}

void remove_leftovers(const Path& directory) {
  std::error_code error;
  std::vector<std::pair<Path, Leftover>> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (auto leftover = leftover_of(entry)) leftovers.emplace_back(entry.path(), std::move(*leftover));
  for (const auto& [path, leftover] : leftovers) {
    const Path whole = directory / leftover.name;
    if (leftover.stepped_aside && !std::filesystem::exists(whole, error))
      std::filesystem::rename(path, whole, error);
    else
      std::filesystem::remove_all(path, error);
  }
}

void sync_directory(const Path& directory) {
  const int descriptor = file_system().open(directory, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) fail(directory, "opening", errno);
  const bool synced = file_system().sync(descriptor) == 0;
  const int code = errno;
  ::close(descriptor);
  if (!synced && code != EINVAL) fail(directory, "syncing", code);
}

}  // namespace retort::base
