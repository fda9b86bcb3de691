// Who may work in a directory.
#include "retort/base/directory_lock.h"

#include <gtest/gtest.h>
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

TEST(DirectoryLock, SaysWhatElseFailed) {
  const test::TemporaryDirectory directory;
  test::FaultyFileSystem disk(test::Call::lock, 1, EIO);
  const auto message = test::message_of<StorageError>([&] { DirectoryLock lock(directory.path()); });
  EXPECT_SAYS(message, "locking failed: " + system_message(EIO));
  EXPECT_EQ(message.find("another process"), std::string::npos) << message;
}

}  // namespace
}  // namespace retort::base
