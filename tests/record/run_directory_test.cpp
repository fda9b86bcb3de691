#include "retort/record/run_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "retort/base/error.h"
#include "retort/record/provenance.h"
#include "support/faulty_files.h"
#include "support/message_of.h"
#include "support/own_disk.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

const Json kRecipe =
    Json::parse(R"({"version":1,"stages":{"a":{"optim":{"lr":0.1}},"b":{"loss":[{"weight":1}]}}})");

RunStart start_of(const Json& recipe) {
  return {recipe, "version: 1\n", describe({})};
}

class Run : public testing::Test {
 protected:
  void SetUp() override {
    path_ = Path(testing::TempDir()) / "run" / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(path_);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  Path path_;
};

std::string message_of(const std::function<void()>& act, base::ExitCode code) {
  try {
    act();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

/// Runs `act` in a child process; its exit status.
int in_child(const std::function<int()>& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Run, HoldsRecipeProvenanceAndResults) {
  {
    const RunDirectory run = RunDirectory::open(path_ / "deep", start_of(kRecipe));
    EXPECT_FALSE(run.resumed());
    EXPECT_FALSE(run.finished("a"));
    run.write_result("a", {{"loss", 2.5}});
    EXPECT_TRUE(run.finished("a"));
  }
  const RunDirectory run = RunDirectory::open(path_ / "deep", start_of(kRecipe));

  EXPECT_TRUE(run.resumed());
  EXPECT_EQ(run.result("a")["loss"], 2.5);
  EXPECT_THROW(run.result("b"), base::StorageError);
  const RunFiles files(run.path());
  EXPECT_EQ(files.recipe(), kRecipe);
  EXPECT_EQ(files.provenance()["starts"].size(), 2U);
  EXPECT_EQ(files.finished_stages(), std::vector<std::string>{"a"});
  EXPECT_EQ(files.result("a")["loss"], 2.5);
  EXPECT_EQ(base::read_file(run.path() / "recipe.yaml"), "version: 1\n");
}

TEST_F(Run, RefusesAChangedRecipeAndNamesTheKeys) {
  RunDirectory::open(path_, start_of(kRecipe)).write_result("a", Json::object());
  base::make_directories(RunFiles(path_).checkpoints("b") / "step-00000010");
  Json changed = kRecipe;
  changed["stages"]["a"]["optim"]["lr"] = 0.2;
  changed["stages"]["b"]["loss"][0]["weight"] = 2;

  const std::string message =
      message_of([&] { RunDirectory::open(path_, start_of(changed)); }, base::ExitCode::usage);

  EXPECT_NE(message.find("differs in stages.a.optim.lr, stages.b.loss.0.weight; choose another --run-dir"),
            std::string::npos)
      << message;
  EXPECT_EQ(RunFiles(path_).recipe(), kRecipe);
}

TEST_F(Run, TakesChangesOfWhatHasNotBegun) {
  const Json first = {{"version", 1},
                      {"data", {{"s", {{"path", "s.txt"}}}, {"t", {{"path", "t.txt"}}}}},
                      {"stages", {{"a", {{"data", {"s"}}}}, {"b", {{"data", {"s", "t"}}, {"tokens", 1}}}}}};
  RunDirectory::open(path_, start_of(first)).write_result("a", Json::object());
  Json changed = first;
  changed["data"]["t"]["path"] = "other.txt";
  changed["data"]["u"] = {{"path", "u.txt"}};
  changed["stages"]["b"]["tokens"] = 2;
  changed["stages"]["c"] = {{"data", {"u"}}};
  EXPECT_EQ(RunDirectory::open(path_, start_of(changed)).recipe(), changed);

  const auto refused = [&](const Json& recipe) {
    return message_of([&] { RunDirectory::open(path_, start_of(recipe)); }, base::ExitCode::usage);
  };
  auto other = changed;
  other["data"]["s"]["path"] = "other.txt";
  EXPECT_SAYS(refused(other), "differs in data.s.path");
  other = changed;
  other["stages"].erase("a");
  EXPECT_SAYS(refused(other), "differs in stages.a");
  other = changed;
  other["version"] = 2;
  EXPECT_SAYS(refused(other), "differs in version");
}

// Students of a select stage have directories of their own.
TEST_F(Run, KnowsThatAStageBeganByWhatItsStudentsLeft) {
  RunDirectory::open(path_, start_of(kRecipe));
  const RunFiles run(path_);
  EXPECT_FALSE(run.has_begun("a"));
  base::make_directories(run.checkpoints("a"));
  EXPECT_FALSE(run.has_begun("a")) << "an empty directory says nothing";
  base::make_directories(run.checkpoints("a.1"));
  EXPECT_TRUE(run.has_begun("a"));
  EXPECT_FALSE(run.has_begun("b"));
  base::make_directories(run.stage_directory("b") / "finalists");
  EXPECT_TRUE(run.has_begun("b"));
}

TEST_F(Run, TakesAnOpenKeyAsLongAsItsStageIsNotFinished) {
  const auto with_budget = [](const char* stage, int budget) {
    Json recipe = {{"stages", {{"a", {{"search", {{"budget", 1}}}}}, {"b", {{"search", {{"budget", 1}}}}}}}};
    recipe["stages"][stage]["search"]["budget"] = budget;
    auto start = start_of(recipe);
    start.open_keys = {"other", "search.budget"};
    return start;
  };
  RunDirectory::open(path_, with_budget("a", 1)).write_result("a", Json::object());
  base::make_directories(RunFiles(path_).checkpoints("b") / "step-00000010");
  EXPECT_EQ(RunDirectory::open(path_, with_budget("b", 2)).recipe(), with_budget("b", 2).recipe);
  const std::string message =
      message_of([&] { RunDirectory::open(path_, with_budget("a", 2)); }, base::ExitCode::usage);
  EXPECT_SAYS(message, "stages.a.search.budget");
  auto closed = with_budget("b", 1);
  closed.open_keys = {};
  message_of([&] { RunDirectory::open(path_, closed); }, base::ExitCode::usage);
}

// A stage named like the key, and a key below another, are no former keys.
TEST_F(Run, GoesOnWithoutAKeyThatIsReadNoMore) {
  Json old = kRecipe;
  old["stages"]["a"]["sizing"] = "sizing.json";
  old["stages"]["a"]["optim"]["sizing"] = "";
  old["stages"]["sizing"] = {{"tokens", 1}};
  Json now = old;
  now["stages"]["a"].erase("sizing");
  RunDirectory::open(path_, start_of(old)).write_result("a", Json::object());
  message_of([&] { RunDirectory::open(path_, start_of(now)); }, base::ExitCode::usage);
  auto start = start_of(now);
  start.former_keys = {"sizing"};
  {
    const auto run = RunDirectory::open(path_, start);
    ASSERT_EQ(run.warnings().size(), 1U);
    EXPECT_SAYS(run.warnings()[0], "wrote stages.a.sizing, which this one does not read; the run goes on");
    EXPECT_EQ(run.recipe(), now);
  }
  EXPECT_TRUE(RunDirectory::open(path_, start).warnings().empty()) << "said once";
  start.recipe["stages"]["a"]["optim"].erase("sizing");
  EXPECT_SAYS(message_of([&] { RunDirectory::open(path_, start); }, base::ExitCode::usage),
              "stages.a.optim.sizing");
}

TEST_F(Run, IsEnteredByOneProcessAtATime) {
  const RunDirectory run = RunDirectory::open(path_, start_of(kRecipe));
  const auto try_to_enter = [&] {
    const std::string message =
        message_of([&] { RunDirectory::open(path_, start_of(kRecipe)); }, base::ExitCode::storage);
    return message.find("another process (pid " + std::to_string(::getppid())) != std::string::npos ? 0 : 1;
  };

  EXPECT_EQ(in_child(try_to_enter), 0);
  EXPECT_EQ(RunFiles(path_).provenance()["starts"].size(), 1U);  // reading needs no lock
}

TEST_F(Run, IsFreeAgainWhenItsProcessDied) {
  in_child([&] {
    const RunDirectory run = RunDirectory::open(path_, start_of(kRecipe));
    return 0;  // leaves without unlocking
  });

  EXPECT_TRUE(RunDirectory::open(path_, start_of(kRecipe)).resumed());
}

TEST_F(Run, ClearsWhatAKilledProcessLeft) {
  RunDirectory::open(path_, start_of(kRecipe));
  std::ofstream(path_ / "stages" / ".a.json.unfinished-123") << "{";

  RunDirectory::open(path_, start_of(kRecipe));

  EXPECT_FALSE(std::filesystem::exists(path_ / "stages" / ".a.json.unfinished-123"));
}

TEST_F(Run, GoesOnWithoutADamagedRecipeWhereItsWordsAreThoseGiven) {
  RunDirectory::open(path_, start_of(kRecipe)).write_result("a", Json::object());
  for (const std::string& damaged : {std::string("{\"version\":"), std::string(), std::string("[]"),
                                     std::string("{\"stages\": {\"a\": 3}}"), std::string("\0{", 2)}) {
    std::ofstream(path_ / "recipe.json") << damaged;
    EXPECT_NO_THROW(RunDirectory::check(path_, start_of(kRecipe))) << damaged;

    const RunDirectory run = RunDirectory::open(path_, start_of(kRecipe));
    ASSERT_EQ(run.warnings().size(), 1U) << damaged;
    EXPECT_SAYS(run.warnings().front(), "recipe.json: is damaged; recipe.yaml beside it is the given recipe");
    EXPECT_TRUE(run.finished("a"));
    EXPECT_EQ(run.recipe(), kRecipe);
  }
}

TEST_F(Run, IsRefusedWhereADamagedRecipeMayHaveBeenAnother) {
  RunDirectory::open(path_, start_of(kRecipe)).write_result("a", Json::object());
  std::ofstream(path_ / "recipe.json") << "{\"version\":";
  auto other = start_of(kRecipe);
  other.recipe_yaml = "version: 1 # another\n";
  const auto refused = [&] {
    return message_of([&] { RunDirectory::open(path_, other); }, base::ExitCode::usage);
  };

  EXPECT_SAYS(refused(), "recipe.json: is damaged, and recipe.yaml beside it is not the given recipe");
  std::filesystem::remove(path_ / "recipe.yaml");
  EXPECT_SAYS(refused(), "choose another --run-dir");
}

TEST_F(Run, LosesADamagedLogAndNothingElse) {
  RunDirectory::open(path_, start_of(kRecipe)).write_result("a", Json::object());
  for (const std::string& damaged : {std::string("{\"starts\": [{]"), std::string(), std::string("\0{", 2)}) {
    std::ofstream(path_ / "provenance.json") << damaged;
    const RunDirectory run = RunDirectory::open(path_, start_of(kRecipe));
    ASSERT_EQ(run.warnings().size(), 1U);
    EXPECT_SAYS(run.warnings()[0], "provenance.json");
    EXPECT_SAYS(run.warnings()[0], "the run goes on");
    EXPECT_TRUE(run.resumed());
    EXPECT_EQ(run.provenance()["starts"].size(), 1U);
  }
  EXPECT_TRUE(RunDirectory::open(path_, start_of(kRecipe)).warnings().empty());
}

TEST_F(Run, SaysOfAResultThatItIsDamagedAlsoWhereItParses) {
  const RunDirectory run = RunDirectory::open(path_, start_of(kRecipe));
  run.write_result("a", {{"loss", 2.5}});
  EXPECT_EQ(run.sound_result("a").value().at("loss"), 2.5);
  auto content = base::read_file(run.result_path("a"));
  content.replace(content.find("2.5"), 3, "2.7");
  std::ofstream(run.result_path("a")) << content;
  EXPECT_SAYS(message_of([&] { (void)run.result("a"); }, base::ExitCode::data), "the checksum does not fit");
  EXPECT_FALSE(run.sound_result("a").has_value());
  EXPECT_TRUE(run.finished("a"));
  std::ofstream(run.result_path("a")) << R"({"loss": 2.7})";  // of an earlier version
  EXPECT_EQ(run.result("a").at("loss"), 2.7);
}

TEST_F(Run, CannotBeAPlainFile) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_) << "text";
  message_of([&] { RunDirectory::open(path_, start_of(kRecipe)); }, base::ExitCode::storage);
}

TEST_F(Run, RefusesAReadOnlyMount) {
  std::filesystem::create_directories(path_);
  const test::OwnDisk disk{path_, "size=64k", MS_RDONLY};
  RETORT_ON_OWN_DISK_OR_SKIP(disk, [&] {
    const std::string message =
        message_of([&] { RunDirectory::open(path_, start_of(kRecipe)); }, base::ExitCode::storage);
    EXPECT_SAYS(message, "Read-only file system");
  });
}

TEST_F(Run, LeavesNothingHalfWrittenOnAFullDisk) {
  std::filesystem::create_directories(path_);
  const test::OwnDisk disk{path_, "size=128k"};
  RETORT_ON_OWN_DISK_OR_SKIP(disk, [&] {
    const RunDirectory run = RunDirectory::open(path_, start_of(kRecipe));
    const Json too_big = {{"text", std::string(1 << 20, 'x')}};
    const std::string message = message_of([&] { run.write_result("a", too_big); }, base::ExitCode::storage);
    EXPECT_SAYS(message, "No space left on device");
    EXPECT_FALSE(run.finished("a"));
    EXPECT_TRUE(std::filesystem::is_empty(path_ / "stages"));
  });
}

// Opens the run, or goes on with it, and finishes stage a.
void work(const Path& path) {
  RunDirectory::open(path, start_of(kRecipe)).write_result("a", {{"text", std::string(10'000, 'x')}});
}

// What the next process finds: a run or none, its files whole.
void expect_to_go_on(const Path& path, bool began, bool finished) {
  if (const RunFiles run(path); run.holds_run()) {
    EXPECT_EQ(run.recipe(), kRecipe);
  } else {
    EXPECT_FALSE(began);
  }
  const RunDirectory run = RunDirectory::open(path, start_of(kRecipe));
  EXPECT_EQ(base::read_file(path / "recipe.yaml"), "version: 1\n");
  if (run.finished("a")) {
    EXPECT_EQ(run.result("a").at("text"), std::string(10'000, 'x'));
  } else {
    EXPECT_FALSE(finished);
  }
}

TEST_F(Run, IsWholeWhicheverCallFails) {
  for (const bool resumed : {false, true}) {
    const auto prepare = [&] {
      std::filesystem::remove_all(path_);
      std::filesystem::create_directories(path_);
      if (resumed) RunDirectory::open(path_ / "run", start_of(kRecipe));
    };
    const int faults = test::for_each_fault(
        path_, prepare, [&] { work(path_ / "run"); },
        [&] { expect_to_go_on(path_ / "run", resumed, false); });
    EXPECT_GE(faults, 40);
  }
}

TEST_F(Run, IsWholeWheneverThePowerGoes) {
  for (const bool resumed : {false, true})
    test::for_each_power_loss(
        path_,
        [&] {
          if (resumed) RunDirectory::open(path_ / "run", start_of(kRecipe));
        },
        [&] { work(path_ / "run"); },
        [&](bool done) { expect_to_go_on(path_ / "run", resumed || done, done); });
}

TEST_F(Run, WarnsWhereTheFileSystemHasNoLocks) {
  test::FaultyFileSystem disk(test::Call::lock, 1, ENOSYS);
  const RunDirectory run = RunDirectory::open(path_, start_of(kRecipe));
  ASSERT_EQ(run.warnings().size(), 1U);
  EXPECT_SAYS(run.warnings()[0], "has no locks (Function not implemented)");
}

TEST(DifferingKeys, AreLeavesInOrder) {
  const Json a = Json::parse(R"({"x":1,"y":{"z":[1,2],"w":true},"gone":0})");
  const Json b = Json::parse(R"({"y":{"w":false,"z":[1,2,3]},"x":1,"new":{"k":1}})");

  EXPECT_EQ(differing_keys(a, b), (std::vector<std::string>{"y.z", "y.w", "gone", "new"}));
  EXPECT_TRUE(differing_keys(a, a).empty());
}

TEST(Provenance, NamesProgramAndMachine) {
  const Json json = describe({.command = {"retort", "run"}, .torch_version = "2.13.0", .threads = 2});

  EXPECT_EQ(json["retort"], version());
  EXPECT_EQ(json["command"], Json({"retort", "run"}));
  EXPECT_EQ(json["torch"], "2.13.0");
  EXPECT_FALSE(json["processor"].get<std::string>().empty());
  EXPECT_GT(json["memory_bytes"].get<std::int64_t>(), 0);
  EXPECT_EQ(json["started"].get<std::string>().size(), 20U);
  EXPECT_NE(long_version().find(version() + " (git "), std::string::npos);
}

}  // namespace
}  // namespace retort::record
