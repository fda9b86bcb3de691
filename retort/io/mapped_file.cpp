#include "retort/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "retort/base/as_errors.h"
#include "retort/base/error.h"

namespace retort::io {
namespace {

using base::ModelError;
using base::require;
using base::StorageError;

// Closes a descriptor at the end of its scope.
struct Descriptor {
  explicit Descriptor(int fd) : value(fd) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value;
};

std::size_t regular_size(int descriptor, const base::Path& path, const char* format) {
  struct stat status {};
  require<StorageError>(::fstat(descriptor, &status) == 0, path.string(),
                        ": cannot be examined: ", base::system_message(errno), ".");
  require<ModelError>(S_ISREG(status.st_mode), path.string(), ": is not a regular file, expected ", format,
                      ".");
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

struct MappedFile::Mapping {
  base::Path path;
  void* address = nullptr;
  std::size_t size = 0;
  struct stat status {};

  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (address != nullptr) ::munmap(address, size);
  }
};

MappedFile::MappedFile(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
MappedFile::~MappedFile() = default;
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;

MappedFile MappedFile::open(const base::Path& path, const char* format, std::size_t min_bytes) {
  // O_NONBLOCK: a named pipe in the place of the file must not make us wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  require<StorageError>(file.value >= 0, path.string(), ": cannot be opened: ", base::system_message(errno),
                        ".");
  auto mapping = std::make_unique<Mapping>();
  mapping->path = path;
  const std::size_t size = regular_size(file.value, path, format);
  require<ModelError>(size >= min_bytes && size > 0, path.string(), ": ", size, " bytes, expected ", format,
                      " of at least ", min_bytes, " bytes; download or export the file again.");
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  require<base::MemoryError>(address != MAP_FAILED || errno != ENOMEM, path.string(),
                             ": cannot be mapped: ", base::out_of_memory());
  require<StorageError>(address != MAP_FAILED, path.string(),
                        ": cannot be mapped: ", base::system_message(errno), ".");
  mapping->address = address;
  mapping->size = size;
  require<ModelError>(
      regular_size(file.value, path, format) == size && ::fstat(file.value, &mapping->status) == 0,
      path.string(), ": changes its size while it is opened; wait until it is written.");
  return MappedFile(std::move(mapping));
}

const base::Path& MappedFile::path() const {
  return mapping_->path;
}

std::span<const std::byte> MappedFile::bytes() const {
  return {static_cast<const std::byte*>(mapping_->address), mapping_->size};
}

void MappedFile::check_unchanged() const {
  struct stat now {};
  // A file replaced by another leaves our mapping whole; only the same file, shorter, is dangerous.
  if (::stat(path().c_str(), &now) != 0) return;
  const bool same = now.st_dev == mapping_->status.st_dev && now.st_ino == mapping_->status.st_ino;
  require<ModelError>(!same || static_cast<std::size_t>(now.st_size) >= mapping_->size, path().string(),
                      ": is now ", now.st_size, " bytes, expected ", mapping_->size,
                      "; it was truncated while in use, start again with a complete file.");
}

}  // namespace retort::io
