// Who may work in a directory.
#include "retort/base/directory_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/faulty_files.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::base {
namespace {

TEST(DirectoryLock, NamesTheProcessThatHoldsIt) {
  const test::TemporaryDirectory directory;
  const DirectoryLock first(directory.path());
  EXPECT_EQ(first.warning(), "");
  const auto message = test::message_of<StorageError>([&] { DirectoryLock second(directory.path()); });
  EXPECT_SAYS(message, "another process (pid " + std::to_string(::getpid()) + " on ");
  EXPECT_SAYS(message, "works in this directory");
}

// Lustre without -o flock says ENOSYS.
TEST(DirectoryLock, GoesOnWithAWarningWhereThereAreNoLocks) {
  for (const int code : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    const test::TemporaryDirectory directory;
    test::FaultyFileSystem disk(test::Call::lock, 1, code);
    const DirectoryLock lock(directory.path());
    EXPECT_SAYS(lock.warning(), system_message(code));
    EXPECT_SAYS(lock.warning(), "a second process in this directory would not be noticed");
    EXPECT_SAYS(read_file(directory / "lock"), "pid " + std::to_string(::getpid()));
  }
}

TEST(DirectoryLock, WritesOverNoFileOfSomebodyElse) {
  const test::TemporaryDirectory directory;
  const auto victim = directory / "victim", lock = directory / "lock";
  write_file_atomically(victim, "precious");
  const auto refused = [&] {
    return test::message_of<StorageError>([&] { DirectoryLock of(directory.path()); });
  };
  std::filesystem::create_symlink(victim, lock);
  EXPECT_SAYS(refused(), "lock: is a link, expected a file that a run made");
  EXPECT_EQ(read_file(victim), "precious");
  std::filesystem::remove(lock);
  std::filesystem::create_symlink(directory / "nowhere", lock);
  refused();
  EXPECT_FALSE(std::filesystem::exists(directory / "nowhere"));
  std::filesystem::remove(lock);
  write_file_atomically(lock, "of a package manager");
  EXPECT_SAYS(refused(), "lock: expected a file that a run made, found another");
  EXPECT_EQ(read_file(lock), "of a package manager");
  std::filesystem::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  refused();
}

TEST(DirectoryLock, SaysWhatElseFailed) {
  const test::TemporaryDirectory directory;
  test::FaultyFileSystem disk(test::Call::lock, 1, EIO);
  const auto message = test::message_of<StorageError>([&] { DirectoryLock lock(directory.path()); });
  EXPECT_SAYS(message, "locking failed: " + system_message(EIO));
  EXPECT_EQ(message.find("another process"), std::string::npos) << message;
}

}  // namespace
}  // namespace retort::base
