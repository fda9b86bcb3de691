#include "retort/base/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace retort::base {
namespace {

FileSystem& real() {
  static FileSystem system;
  return system;
}

std::atomic<FileSystem*> in_use{nullptr};

}  // namespace

int FileSystem::open(const std::filesystem::path& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0644);
}

ssize_t FileSystem::write(int descriptor, const void* bytes, std::size_t size) {
  return ::write(descriptor, bytes, size);
}

int FileSystem::sync(int descriptor) {
  return ::fsync(descriptor);
}

int FileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return ::rename(from.c_str(), to.c_str());
}

int FileSystem::exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
}

int FileSystem::lock(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB);
}

FileSystem& file_system() {
  auto* other = in_use.load();
  return other ? *other : real();
}

ReplacedFileSystem::ReplacedFileSystem(FileSystem& other) : before_(in_use.exchange(&other)) {}

ReplacedFileSystem::~ReplacedFileSystem() {
  in_use.store(before_);
}

}  // namespace retort::base
