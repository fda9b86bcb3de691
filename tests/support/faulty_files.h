#pragma once
// A disk on which a call fails, or whose power goes.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/file_system.h"

namespace retort::test {

enum class Call { open, write, sync, rename, exchange, lock };
inline constexpr Call kWritingCalls[] = {Call::open, Call::write, Call::sync, Call::rename, Call::exchange};

/// What ends the process when the power goes.
struct PowerLoss {};

/// The real one, until call `number` (from 1) of a kind; it fails with `code`, a write after half of its
/// bytes. Takes its place as long as it lives.
class FaultyFileSystem : public base::FileSystem {
 public:
  FaultyFileSystem() : replaced_(*this) {}
  FaultyFileSystem(Call call, int number, int code) : fault_{{call, number, code}}, replaced_(*this) {}

  bool happened() const { return happened_; }
  /// File systems without locks, or without an exchange of names.
  void cannot(Call call, int code) { unable_[call] = code; }

  int open(const std::filesystem::path& path, int flags) override {
    return fails(Call::open) ? -1 : base::FileSystem::open(path, flags);
  }
  ssize_t write(int descriptor, const void* bytes, std::size_t size) override {
    if (!fails(Call::write)) return base::FileSystem::write(descriptor, bytes, size);
    const int code = errno;
    const std::scoped_lock lock(mutex_);
    if (!half_written_ && size > 1) {  // the call after it says why
      half_written_ = true;
      --count_[Call::write];
      return base::FileSystem::write(descriptor, bytes, size / 2);
    }
    errno = code;
    return -1;
  }
  int sync(int descriptor) override { return fails(Call::sync) ? -1 : base::FileSystem::sync(descriptor); }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return fails(Call::rename) ? -1 : base::FileSystem::rename(from, to);
  }
  int exchange(const std::filesystem::path& a, const std::filesystem::path& b) override {
    return fails(Call::exchange) ? -1 : base::FileSystem::exchange(a, b);
  }
  int lock(int descriptor) override { return fails(Call::lock) ? -1 : base::FileSystem::lock(descriptor); }

 protected:
  /// Whether this call fails; errno says why.
  virtual bool fails(Call call) {
    if (const auto found = unable_.find(call); found != unable_.end()) {
      errno = found->second;
      return true;
    }
    const std::scoped_lock lock(mutex_);
    if (!fault_ || fault_->call != call || ++count_[call] != fault_->number) return false;
    happened_ = true;
    errno = fault_->code;
    return true;
  }

 private:
  struct Fault {
    Call call;
    int number, code;
  };
  std::optional<Fault> fault_;
  std::mutex mutex_;  // ranks are threads here
  std::map<Call, int> count_, unable_;
  bool happened_ = false, half_written_ = false;
  base::ReplacedFileSystem replaced_;
};

/// Runs `work` on a disk on which one call fails, for each call of each kind and each cause: `prepare` before
/// and `check` after each.  The error must be a StorageError that names the cause and something below `root`.
/// Returns how many faults happened.
inline int for_each_fault(const std::filesystem::path& root, const std::function<void()>& prepare,
                          const std::function<void()>& work, const std::function<void()>& check) {
  int faults = 0;
  for (const auto call : kWritingCalls)
    for (const int code : {ENOSPC, EIO})
      for (int number = 1;; ++number) {
        SCOPED_TRACE(::testing::Message() << "call " << static_cast<int>(call) << ", number " << number
                                          << ", " << base::system_message(code));
        prepare();
        bool happened = false;
        try {
          FaultyFileSystem disk(call, number, code);
          try {
            work();
          } catch (const base::StorageError& error) {
            EXPECT_NE(std::string(error.what()).find(base::system_message(code)), std::string::npos)
                << error.what();
            EXPECT_NE(std::string(error.what()).find(root.string()), std::string::npos) << error.what();
          }
          happened = disk.happened();
        } catch (const std::exception& error) {
          ADD_FAILURE() << "another kind of error: " << error.what();
        }
        if (!happened) break;
        ++faults;
        check();
        if (::testing::Test::HasFailure()) return faults;
      }
  return faults;
}

/// A disk that forgets what was not synced: contents of files, and names in directories.
class ForgetfulDisk : public FaultyFileSystem {
 public:
  /// The power goes at call `last_call` of any kind (0: never).  What is below `root` now is safe.
  ForgetfulDisk(std::filesystem::path root, int last_call) : root_(std::move(root)), last_call_(last_call) {
    remember(root_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) remember(entry.path());
  }
  ~ForgetfulDisk() override {
    for (const auto& [number, safe] : safe_) ::close(safe.held);
  }
  ForgetfulDisk(const ForgetfulDisk&) = delete;
  ForgetfulDisk& operator=(const ForgetfulDisk&) = delete;

  bool power_is_gone() const {
    const std::scoped_lock lock(mutex_);
    return gone_;
  }

  int sync(int descriptor) override {
    const int result = FaultyFileSystem::sync(descriptor);
    const std::scoped_lock lock(mutex_);
    if (result == 0 && !gone_) remember("/proc/self/fd/" + std::to_string(descriptor));
    return result;
  }

  /// Leaves below root what a machine finds when it starts again: contents as they were synced, and of names
  /// those that were, or, where the disk wrote them down by itself, all.
  enum class Names { synced, all };
  void start_again(Names names) {
    std::map<std::filesystem::path, std::string> files;
    std::set<std::filesystem::path> directories;
    find(entry_of(root_), root_, {}, names, files, directories);
    for (const auto& entry : std::filesystem::directory_iterator(root_)) std::filesystem::remove_all(entry);
    for (const auto& directory : directories) std::filesystem::create_directories(root_ / directory);
    for (const auto& [name, content] : files) std::ofstream(root_ / name, std::ios::binary) << content;
  }

 protected:
  bool fails(Call call) override {
    {
      const std::scoped_lock lock(mutex_);
      if (gone_) return errno = EIO, true;
      if (last_call_ > 0 && ++calls_ == last_call_) {
        gone_ = true;
        throw PowerLoss{};
      }
    }
    return FaultyFileSystem::fails(call);
  }

 private:
  struct Entry {
    ino_t number = 0;
    bool is_directory = false;
  };
  using Entries = std::map<std::string, Entry>;
  // Held open, so that its number is not given to another file.
  struct Safe {
    int held = -1;
    std::string content;  // of a file
    Entries entries;      // of a directory
  };

  static Entry entry_of(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? Entry{status.st_ino, S_ISDIR(status.st_mode)} : Entry{};
  }
  static Entries listed(const std::filesystem::path& directory) {
    Entries entries;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      entries[entry.path().filename()] = entry_of(entry.path());
    return entries;
  }

  void remember(const std::filesystem::path& path) {
    auto& safe = safe_[entry_of(path).number];
    if (safe.held < 0) safe.held = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (std::filesystem::is_directory(path)) {
      safe.entries = listed(path);
      return;
    }
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    safe.content = content.str();
  }

  // `now`: where this is at present, if it is anywhere.
  void find(const Entry& entry, const std::filesystem::path& now, const std::filesystem::path& name,
            Names names, std::map<std::filesystem::path, std::string>& files,
            std::set<std::filesystem::path>& directories) const {
    const auto known = safe_.find(entry.number);
    const auto safe = known == safe_.end() ? Safe{} : known->second;
    if (!entry.is_directory) {
      files[name] = safe.content;
      return;
    }
    directories.insert(name);
    const bool is_there = entry_of(now).number == entry.number;
    for (const auto& [child, inside] : names == Names::all && is_there ? listed(now) : safe.entries)
      find(inside, now / child, name / child, names, files, directories);
  }

  std::filesystem::path root_;
  mutable std::mutex mutex_;  // ranks are threads here
  int last_call_, calls_ = 0;
  bool gone_ = false;
  std::map<ino_t, Safe> safe_;
};

/// Runs `work` on a disk whose power goes at its first call, its second, and so on: `prepare` before and
/// `check` after each start.  `check` is told whether `work` had returned before the power went.
inline void for_each_power_loss(const std::filesystem::path& root, const std::function<void()>& prepare,
                                const std::function<void()>& work,
                                const std::function<void(bool done)>& check, bool can_exchange = true) {
  for (const auto names : {ForgetfulDisk::Names::synced, ForgetfulDisk::Names::all}) {
    bool done = false;
    for (int last_call = 1; !done; ++last_call) {
      SCOPED_TRACE(::testing::Message()
                   << "power goes at call " << last_call << ", "
                   << (names == ForgetfulDisk::Names::all ? "all" : "synced") << " names are left");
      std::filesystem::remove_all(root);
      std::filesystem::create_directories(root);
      prepare();
      {
        ForgetfulDisk disk(root, last_call);
        if (!can_exchange) disk.cannot(Call::exchange, EINVAL);
        try {
          work();
          done = !disk.power_is_gone();
        } catch (const PowerLoss&) {
        } catch (const base::StorageError&) {  // of another rank, which found no disk any more
          if (!disk.power_is_gone()) throw;
        }
        disk.start_again(names);
      }
      check(done);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace retort::test
