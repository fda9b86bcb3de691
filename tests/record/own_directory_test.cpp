// Files of users in a directory that is named as a run's.
#include "retort/record/own_directory.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "retort/base/error.h"
#include "retort/record/run_directory.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

const Json kTraining = Json::parse(R"({"version": 1, "stages": {"a": {"kind": "train"}}})");
const RunStart kStart{kTraining, "version: 1\n", {{"host", "x"}}};

class OwnDirectory : public testing::Test {
 protected:
  Path write(const Path& name, const std::string& content) const {
    base::make_directories((directory_ / name).parent_path());
    base::write_file_atomically(directory_ / name, content);
    return directory_ / name;
  }
  /// Files with their contents, folders, and links with what they lead to.
  std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path()))
      found[entry.path().lexically_relative(directory_.path())] =
          entry.is_symlink()        ? "to " + std::filesystem::read_symlink(entry.path()).string()
          : entry.is_regular_file() ? base::read_file(entry.path())
                                    : "";
    return found;
  }
  /// What entering says, and that it and a dry run refuse alike and leave everything as it was.
  template <typename E = base::UsageError>
  std::string refused(const Path& name) const {
    const auto before = everything();
    const auto path = name.is_absolute() ? name : directory_ / name;
    const auto message = test::message_of<E>([&] { (void)RunDirectory::open(path, kStart); });
    EXPECT_EQ(test::message_of<E>([&] { RunDirectory::check(path, kStart); }), message);
    EXPECT_EQ(everything(), before);
    return message;
  }
  void expect_enters(const Path& name) const {
    RunDirectory::check(directory_ / name, kStart);
    (void)RunDirectory::open(directory_ / name, kStart);
    EXPECT_TRUE(is_own_directory(directory_ / name));
  }
  /// As an earlier version left it.
  void unmarked_run() const {
    (void)RunDirectory::open(directory_ / "run", kStart);
    std::filesystem::remove(directory_ / "run/run.json");
  }

  test::TemporaryDirectory directory_;
};

TEST_F(OwnDirectory, IsNewEmptyOrBehindALink) {
  expect_enters("new");
  expect_enters("deep/new");
  std::filesystem::create_directory(directory_ / "empty");
  expect_enters("empty");
  std::filesystem::create_directory(directory_ / "other");
  std::filesystem::create_symlink("other", directory_ / "link");
  expect_enters("link");
  expect_enters("link");
}

TEST_F(OwnDirectory, HoldsNoFilesOfUsers) {
  write("project/models/born/notes.txt", "precious");
  write("project/essay.unfinished-draft.txt", "draft");
  write("project/metrics.jsonl", "log");
  write("project/report.html", "report");
  write("project/recipe.yaml", "mine: 1");
  write("project/provenance.json", "{}");
  EXPECT_SAYS(refused("project"),
              "project: holds files that no run made (essay.unfinished-draft.txt and 5 more)");
  for (const auto* name :
       {"report.html", "recipe.json", "run.json", ".hidden", "lock", "models/born/notes.txt", "stop",
        "recipe.json.bak", ".run.json.unfinished-draft.txt.bak/x"}) {
    SCOPED_TRACE(name);
    std::filesystem::remove_all(directory_ / "one");
    write(Path("one") / name, "{}");
    EXPECT_SAYS(refused("one"), "choose a new or an empty one with --run-dir");
  }
}

TEST_F(OwnDirectory, IsNoModelAndNoRootAndNoFile) {
  write("model/config.json", "{}");
  write("model/model.safetensors", "x");
  EXPECT_SAYS(refused("model"), "(config.json and 1 more)");
  refused("/");
  write("file", "text");
  EXPECT_SAYS(refused<base::StorageError>("file"), "file: is no directory");
}

TEST_F(OwnDirectory, IsNoFolderWithARecipeOfSomebodyElse) {
  for (const auto* name : {"models", "checkpoints", "stages"})
    std::filesystem::create_directories(directory_ / "own" / name);
  write("own/recipe.yaml", "version: 1\n");
  for (const auto* text :
       {"{}", "[]", "{", R"({"stages": {"a": {"kind": "train"}}})", R"({"version": 1, "stages": {}})",
        R"({"version": 1, "stages": ["boil"]})", R"({"version": 1, "stages": {"boil": "egg"}})"}) {
    SCOPED_TRACE(text);
    write("own/recipe.json", text);
    refused("own");
  }
}

TEST_F(OwnDirectory, IsNoLinkToNowhere) {
  std::filesystem::create_symlink("nowhere", directory_ / "link");
  EXPECT_SAYS(refused<base::StorageError>("link"),
              "link: is a link to nowhere, which is not there; mount or make it");
  EXPECT_SAYS(refused<base::StorageError>("link/run"), "link: is a link to nowhere");
  EXPECT_SAYS(refused<base::StorageError>("link/deep/run"), "link: is a link to nowhere");
}

TEST_F(OwnDirectory, OfAnEarlierVersionIsKnownAndMarked) {
  unmarked_run();
  expect_enters("run");
  EXPECT_EQ(Json::parse(base::read_file(directory_ / "run/run.json")).at("format"), 1);
  for (const auto* lacking : {"recipe.yaml", "recipe.json", "models", "checkpoints", "stages"}) {
    SCOPED_TRACE(lacking);
    std::filesystem::remove_all(directory_ / "run");
    unmarked_run();
    std::filesystem::remove_all(directory_ / "run" / lacking);
    refused("run");
  }
}

TEST_F(OwnDirectory, WhoseMarkIsDamagedIsKnownByTheRest) {
  (void)RunDirectory::open(directory_ / "run", kStart);
  for (const auto* mark : {"", "{", "[]", "{}", R"({"kind": "retort ruN directory", "format": 1})"}) {
    SCOPED_TRACE(mark);
    write("run/run.json", mark);
    expect_enters("run");
    EXPECT_EQ(Json::parse(base::read_file(directory_ / "run/run.json")).at("kind"), "retort run directory");
  }
}

TEST_F(OwnDirectory, OfALaterVersionIsRefusedByItsFormat) {
  (void)RunDirectory::open(directory_ / "run", kStart);
  write("run/run.json", R"({"kind": "retort run directory", "format": 2})");
  EXPECT_SAYS(refused("run"),
              "run.json: format 2, expected 1; use the version of Retort that made this run directory");
}

// What is behind a link in it is not the run's to write over.
TEST_F(OwnDirectory, HasNoLinksInPlaceOfItsFiles) {
  for (const auto* name : {"report.html", "metrics.jsonl", "recipe.yaml", "recipe.json", "provenance.json",
                           "inputs.json", "lock"}) {
    SCOPED_TRACE(name);
    std::filesystem::remove_all(directory_ / "run");
    (void)RunDirectory::open(directory_ / "run", kStart);
    std::filesystem::remove(directory_ / "run" / name);
    std::filesystem::create_symlink(write("victim", "precious"), directory_ / "run" / name);
    EXPECT_SAYS(refused("run"), std::string(name) + ": is a link, and a run writes over its own files only");
  }
}

TEST_F(OwnDirectory, IsTakenBackWithItsMarkWhereNothingWasMade) {
  RunDirectory::open(directory_ / "deep/run", kStart).discard_if_nothing_was_made();
  EXPECT_EQ(everything(), (std::map<std::string, std::string>{}));
  {
    const auto run = RunDirectory::open(directory_ / "run", kStart);
    write("run/notes.txt", "of the user");
    run.discard_if_nothing_was_made();
  }
  EXPECT_EQ(base::read_file(directory_ / "run/notes.txt"), "of the user");
  expect_enters("run");  // it keeps its mark
}

// A start that was killed between its mark and its lock leaves one.
TEST_F(OwnDirectory, MayHoldTheBeginningOfAStart) {
  write("run/.run.json.unfinished-4711", "{");
  expect_enters("run");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/.run.json.unfinished-4711"));
}

}  // namespace
}  // namespace retort::record
