// Files that are whole whatever the disk does.
#include "retort/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/line_file.h"
#include "retort/base/regular_file.h"
#include "support/faulty_files.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::base {
namespace {

const std::string kOld = "what was there", kNew(100'000, 'n');

class Files : public testing::Test {
 protected:
  void begin() const {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    write_file_atomically(file_, kOld);
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(root_), std::filesystem::directory_iterator()));
  }

  test::TemporaryDirectory directory_;
  Path root_ = directory_ / "disk", file_ = root_ / "file";
};

TEST_F(Files, AreTheOldOrTheNewWhicheverCallFails) {
  const int faults = test::for_each_fault(
      root_, [&] { begin(); }, [&] { write_file_atomically(file_, kNew); },
      [&] {
        const auto content = read_file(file_);
        EXPECT_TRUE(content == kOld || content == kNew) << content.size() << " bytes";
        EXPECT_EQ(entries(), 1U);
      });
  EXPECT_EQ(faults, 2 * 6);  // opens of file and directory, a write, syncs of both, a rename
}

TEST_F(Files, AreTheOldOrTheNewWheneverThePowerGoes) {
  test::for_each_power_loss(
      root_, [&] { begin(); }, [&] { write_file_atomically(file_, kNew); },
      [&](bool done) {
        const auto content = read_file(file_);
        EXPECT_TRUE(content == kNew || (!done && content == kOld)) << content.size() << " bytes";
      });
}

TEST_F(Files, OfAPipeOrADeviceIsRefusedAtOnce) {
  begin();
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);  // nobody writes to it
  for (const auto& [path, found] :
       {std::pair<Path, const char*>{root_ / "pipe", "is a pipe, expected a file"},
        {"/dev/zero", "is a device, expected a file"},
        {root_, "is a directory, expected a file"}}) {
    EXPECT_SAYS(test::message_of<StorageError>([&] { read_file(path); }), found);
    EXPECT_SAYS(test::message_of<StorageError>([&] { hash_file(path); }), found);
    EXPECT_FALSE(why_no_text(path).empty());
  }
  EXPECT_EQ(why_no_file(file_), "");
  EXPECT_EQ(why_no_file(root_ / "none"), "");
}

class Directories : public Files {
 protected:
  static void fill(const Path& target, const std::string& content) {
    write_file_atomically(target / "a", content);
    write_file_atomically(target / "b", content);
  }
  void begin() const {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    write_directory_atomically(root_ / "model", [](const Path& target) { fill(target, kOld); });
  }
  void replace() const {
    write_directory_atomically(root_ / "model", [](const Path& target) { fill(target, kNew); });
  }
  void expect_whole(bool done) const {
    remove_leftovers(root_);  // as the next process does
    const auto content = read_file(root_ / "model/a");
    EXPECT_TRUE(content == kNew || (!done && content == kOld)) << content.size() << " bytes";
    EXPECT_TRUE(read_file(root_ / "model/b") == content);
    EXPECT_EQ(entries(), 1U);
  }
};

TEST_F(Directories, AreTheOldOrTheNewWhicheverCallFails) {
  const int faults = test::for_each_fault(
      root_, [&] { begin(); }, [&] { replace(); }, [&] { expect_whole(false); });
  EXPECT_GT(faults, 20);
}

TEST_F(Directories, AreTheOldOrTheNewWheneverThePowerGoes) {
  test::for_each_power_loss(
      root_, [&] { begin(); }, [&] { replace(); }, [&](bool done) { expect_whole(done); });
}

// Then the old one steps aside for a moment.
TEST_F(Directories, AreTheOldOrTheNewWhereNamesCannotBeExchanged) {
  for (int number = 1; number <= 6; ++number) {
    SCOPED_TRACE(number);
    begin();
    {
      test::FaultyFileSystem disk(test::Call::rename, number, EIO);
      disk.cannot(test::Call::exchange, EINVAL);
      try {
        replace();
      } catch (const StorageError&) {
      }
      EXPECT_EQ(disk.happened(), number <= 4);  // two of files, one aside, one into place
    }
    expect_whole(number > 4);
  }
  test::for_each_power_loss(
      root_, [&] { begin(); }, [&] { replace(); }, [&](bool done) { expect_whole(done); },
      /*can_exchange=*/false);
}

TEST_F(Directories, ThatStoodAsideGetTheirNameBack) {
  begin();
  std::filesystem::rename(root_ / "model", root_ / ".model.unfinished-4711-old");
  std::filesystem::create_directory(root_ / ".model.unfinished-4711");
  expect_whole(false);
}

// Users have files of their own whose names look like those of unfinished writes.
TEST_F(Files, OfOthersAreNoLeftovers) {
  begin();
  const std::vector<std::string> others{
      "essay.unfinished-draft.txt", "a.unfinished-12",     ".a.unfinished-",
      ".a.unfinished-12b",          ".unfinished-12",      ".a.unfinished-12-older",
      "my.unfinished-work/thesis",  ".a.unfinished-x/file"};
  for (const auto& name : others) {
    std::filesystem::create_directories((root_ / name).parent_path());
    write_file_atomically(root_ / name, kOld);
  }
  std::filesystem::create_symlink(file_, root_ / ".link.unfinished-12");
  write_file_atomically(root_ / ".b.unfinished-12", kOld);
  std::filesystem::create_directories(root_ / ".c.d.unfinished-4711/inside");
  remove_leftovers(root_);
  for (const auto& name : others) EXPECT_EQ(read_file(root_ / name), kOld) << name;
  EXPECT_EQ(read_file(root_ / ".link.unfinished-12"), kOld);
  EXPECT_FALSE(std::filesystem::exists(root_ / ".b.unfinished-12"));
  EXPECT_FALSE(std::filesystem::exists(root_ / ".c.d.unfinished-4711"));
}

TEST_F(Files, BehindALinkAreWrittenWhereItLeads) {
  begin();
  for (const auto* target : {"file", "new", "missing/new"}) {
    SCOPED_TRACE(target);
    const Path link = root_ / "link";
    std::filesystem::create_symlink(target, link);
    if (std::string(target) == "missing/new")
      EXPECT_SAYS(test::message_of<StorageError>([&] { write_file_atomically(link, kNew); }), "missing/new");
    else
      write_file_atomically(link, kNew);
    EXPECT_TRUE(std::filesystem::is_symlink(std::filesystem::symlink_status(link)));
    EXPECT_EQ(std::filesystem::exists(root_ / target), std::string(target) != "missing/new");
    std::filesystem::remove(link);
  }
  std::filesystem::create_symlink("circle", root_ / "circle");
  EXPECT_SAYS(test::message_of<StorageError>([&] { write_file_atomically(root_ / "circle", kNew); }), "link");
  EXPECT_TRUE(std::filesystem::is_symlink(std::filesystem::symlink_status(root_ / "circle")));
}

TEST_F(Directories, AreThereWithTheirParents) {
  test::for_each_power_loss(
      root_, [] {},
      [&] {
        make_directories(root_ / "a/b/c");
        write_file_atomically(root_ / "a/b/c/file", kNew);
      },
      [&](bool done) {
        if (done) {
          EXPECT_TRUE(read_file(root_ / "a/b/c/file") == kNew);
        }
      });
}

TEST_F(Files, OfLinesHaveWholeLinesOnly) {
  const auto lines = root_ / "lines";
  const auto begin_lines = [&] {
    begin();
    LineFile file(lines);
    EXPECT_EQ(file.append("one"), 0);
  };
  const int faults = test::for_each_fault(
      root_, begin_lines,
      [&] {
        LineFile file(lines);
        for (const char* line : {"two", "three"}) {
          const int code = file.append(line);
          require<StorageError>(code == 0, lines.string(), ": ", system_message(code));
        }
        const int code = file.sync();
        require<StorageError>(code == 0, lines.string(), ": ", system_message(code));
      },
      [&] {
        const auto content = read_file(lines);
        EXPECT_TRUE(content == "one\n" || content == "one\ntwo\n" || content == "one\ntwo\nthree\n")
            << content;
      });
  EXPECT_EQ(faults, 2 * 4);
}

TEST_F(Files, OfLinesLoseNothingThatWasSynced) {
  const auto lines = root_ / "lines";
  test::for_each_power_loss(
      root_, [&] { begin(); },
      [&] {
        LineFile file(lines);
        sync_directory(root_);
        for (const char* line : {"one", "two"}) {
          EXPECT_EQ(file.append(line), 0);
          EXPECT_EQ(file.sync(), 0);
        }
      },
      [&](bool done) {
        if (done) {
          EXPECT_EQ(read_file(lines), "one\ntwo\n");
        }
      });
}

}  // namespace
}  // namespace retort::base
