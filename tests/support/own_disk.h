#pragma once
// A small disk of one's own: full after some kilobytes, or read-only.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <functional>
#include <future>
#include <string>

namespace retort::test {

struct OwnDisk {
  std::filesystem::path place;  ///< an existing directory
  std::string options;          ///< of tmpfs, for example "size=64k"
  unsigned long flags = 0;      ///< of mount(2)
};

/// Runs `act` in a thread that sees a disk at `place`, as do the programs that it starts; nobody else sees
/// it, and it goes with the thread.  False, with nothing run, where this machine lets us mount nothing.
inline bool on_own_disk(const OwnDisk& disk, const std::function<void()>& act) {
  return std::async(std::launch::async,
                    [&] {
                      const bool mounted =
                          ::unshare(CLONE_NEWNS) == 0 &&
                          ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                          ::mount("tmpfs", disk.place.c_str(), "tmpfs", disk.flags, disk.options.c_str()) ==
                              0;
                      if (mounted) act();
                      return mounted;
                    })
      .get();
}

}  // namespace retort::test

/// `act` on a disk of its own; where nothing can be mounted the test is counted as not run.
#define RETORT_ON_OWN_DISK_OR_SKIP(disk, ...)          \
  if (!retort::test::on_own_disk((disk), __VA_ARGS__)) \
  GTEST_SKIP() << "needs privileges: mounting a disk takes root with CAP_SYS_ADMIN"
