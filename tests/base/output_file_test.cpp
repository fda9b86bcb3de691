// Files that users name for a command to write.
#include "retort/base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::base {
namespace {

void require_ours(const Path& path) {
  require_replaceable(path, "what we write",
                      [](std::string_view beginning) { return beginning.starts_with("ours"); });
}

TEST(OutputFile, MayBeNewEmptyOursOrNoFileAtAll) {
  const test::TemporaryDirectory directory;
  require_ours(directory / "new");
  require_ours(directory / "absent" / "new");
  write_file_atomically(directory / "empty", "");
  require_ours(directory / "empty");
  write_file_atomically(directory / "again", "ours, and more than that");
  require_ours(directory / "again");
  require_ours("/dev/null");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  require_ours(directory / "pipe");  // does not wait for a writer
}

TEST(OutputFile, MayNotBeAFileOfTheUser) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "book.txt", "not ours");
  const auto message = test::message_of<UsageError>([&] { require_ours(directory / "book.txt"); });
  EXPECT_SAYS(message, "book.txt: holds something else than what we write, and would be replaced");
  std::filesystem::create_symlink("book.txt", directory / "link");
  test::message_of<UsageError>([&] { require_ours(directory / "link"); });
  test::message_of<StorageError>([&] { require_ours(directory.path()); });
}

}  // namespace
}  // namespace retort::base
