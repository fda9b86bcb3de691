// Who listens to the program, and who stops listening: closed descriptors, readers and terminals that go, and
// what a terminal would obey.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "cli/refusal.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

constexpr int kTokens = 6 * 128;
constexpr const char* kEscapes = "\x1b]0;owned\x07\x1b[31m";

class Streams : public testing::Test {
 protected:
  void SetUp() override { project_.write_recipe({train_stage(kTokens)}); }

  Finished run_with(const std::vector<std::string>& arguments, const std::function<void()>& prepare) const {
    return test::run(arguments, "", project_.path(), prepare);
  }
  /// Runs it with `descriptor` leading to a pipe that nobody reads.
  Finished run_unread(const std::vector<std::string>& arguments, int descriptor) const {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    ::close(ends[0]);
    const auto finished = run_with(arguments, [&] {
      ::signal(SIGPIPE, SIG_DFL);
      ::dup2(ends[1], descriptor);
    });
    ::close(ends[1]);
    return finished;
  }
  void expect_whole_run() {
    EXPECT_TRUE(fs::exists(project_.path("run/models/born/model.safetensors")));
    EXPECT_EQ(metrics_of(project_.path("run")).size(), 7U);
    EXPECT_EQ(base::read_file(project_.path("run/lock")).rfind("pid ", 0), 0U);
    fs::remove_all(project_.path("run"));
  }

  TinyProject project_;
  const std::vector<std::string> run_{"run", "recipe.yaml", "--run-dir", "run", "-v"};
};

TEST_F(Streams, ThatAreClosedAreNeverFilesOfARun) {
  for (const auto& closed : {std::vector{2}, {1, 2}, {0, 1, 2}}) {
    SCOPED_TRACE(closed.size());
    const auto finished = run_with(run_, [&] {
      for (const int descriptor : closed) ::close(descriptor);
    });
    EXPECT_EQ(finished.code, 0) << finished.err;
    expect_whole_run();
  }
}

TEST_F(Streams, ARunGoesOnWithoutReaders) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    SCOPED_TRACE(descriptor);
    EXPECT_EQ(run_unread(run_, descriptor).code, 0);
    expect_whole_run();
  }
  auto two_ranks = run_;
  two_ranks.insert(two_ranks.end(), {"--ranks", "2"});
  EXPECT_EQ(run_unread(two_ranks, STDERR_FILENO).code, 0);
  expect_whole_run();
}

TEST_F(Streams, AFilterEndsAsFiltersDoWhereNobodyReads) {
  EXPECT_EQ(run_unread({"tokenize", "models/europa-5m", "text.txt"}, STDOUT_FILENO).code, 128 + SIGPIPE);
}

TEST_F(Streams, ARunSavesWhereItsTerminalGoesAndGoesOnUnderNohup) {
  project_.write_recipe({train_stage(2000 * 128, ", checkpoint_every_steps: 500")});
  const auto has_begun = [&] { return metrics_of(project_.path("run")).size() > 2; };
  for (const char* ranks : {"1", "2"}) {
    auto arguments = run_;
    arguments.insert(arguments.end(), {"--ranks", ranks});
    Running running(arguments, "", project_.path(), [] { ::signal(SIGHUP, SIG_DFL); });
    ASSERT_TRUE(wait_until(running, has_begun)) << running.err();
    running.signal(SIGHUP);
    const auto stopped = running.wait();
    EXPECT_EQ(stopped.code, 85) << stopped.err;
    fs::remove_all(project_.path("run"));
  }
  Running kept(run_, "", project_.path(), [] { ::signal(SIGHUP, SIG_IGN); });
  ASSERT_TRUE(wait_until(kept, has_begun)) << kept.err();
  kept.signal(SIGHUP);
  const auto steps = metrics_of(project_.path("run")).size();
  EXPECT_TRUE(wait_until(kept, [&] { return metrics_of(project_.path("run")).size() > steps + 5; }))
      << kept.err();
}

TEST_F(Streams, AFileBeyondTheLimitOfSizesIsAnErrorWithASentence) {
  const auto finished = run_with(run_, [] {
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(finished.code, 7) << finished.err;
  EXPECT_SAYS(said(finished.err), "ulimit -f");
}

// No control character but newlines and tabs, and no line of its own.
void expect_harmless(const Finished& finished) {
  for (const auto& text : {finished.out, finished.err}) {
    for (const char c : text)
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') << text;
    EXPECT_EQ(text.find("\nretort: all is well"), std::string::npos) << text;
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
  }
}

TEST_F(Streams, NothingThatAFileHoldsReachesATerminalRaw) {
  copy_model(project_, "m");
  const std::string evil = std::string(kEscapes) + "\xc2\x9b" + "1m\nretort: all is well";
  const base::Json key = evil;  // as it is written in JSON
  const auto sound = base::read_file(project_.path("m/config.json"));
  project_.write("m/config.json", "{" + key.dump() + ": 1, " + key.dump() + ": 2}");
  auto finished = project_.run({"info", "m"});
  EXPECT_EQ(finished.code, 4);
  expect_harmless(finished);
  EXPECT_SAYS(finished.err, "\\x1b]0;owned");
  project_.write("m/config.json", sound);

  auto lineage = base::Json::parse(base::read_file(project_.path("m/retort.json")));
  lineage["provenance"][evil] = evil;
  project_.write("m/retort.json", lineage.dump());
  for (const auto& more : {std::vector<std::string>{}, {"--json"}}) {
    std::vector<std::string> arguments{"info", "m"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    finished = project_.run(arguments);
    EXPECT_EQ(finished.code, 0) << finished.err;
    expect_harmless(finished);
    EXPECT_SAYS(finished.out, "owned");
  }
  const std::string place = "d" + evil;
  for (const auto& path : {place, place + "/none"}) {
    expect_harmless(project_.run({"info", path}));
    expect_harmless(project_.run({"eval", path, "--text", path}));
    expect_harmless(project_.run({"run", path}));
    expect_harmless(project_.run({path}));
  }
}

// Ids whose tokens are an escape sequence, a newline and a tab.
TEST_F(Streams, AnswersKeepTheirLinesAndNothingElseThatATerminalObeys) {
  copy_model(project_, "m");
  const auto path = project_.path("m/tokenizer.json");
  auto tokenizer = base::Json::parse(base::read_file(path));
  auto vocabulary = base::Json::object();
  for (const auto& [token, id] : tokenizer["model"]["vocab"].items())
    vocabulary[id > 300 ? base::join("\u011b[31m\u010a\u0109", id.get<int>()) : token] =
        id;  // ESC, \n and \t
  tokenizer["model"]["vocab"] = vocabulary;
  tokenizer["model"]["merges"] = base::Json::array();
  project_.write("m/tokenizer.json", tokenizer.dump());
  const auto answer = project_.run(
      {"generate", "m", "--prompt", "a", "--max-new-tokens", "4", "--seed", "1", "--temperature", "5"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  expect_harmless(answer);
  EXPECT_SAYS(answer.out, "\\x1b[31m\n\t");
  const auto exact = project_.run({"generate", "m", "--prompt", "a", "--max-new-tokens", "4", "--seed", "1",
                                   "--temperature", "5", "--json"});
  EXPECT_SAYS(base::Json::parse(exact.out).at("text").get<std::string>(), "\x1b[31m\n\t");
}

TEST_F(Streams, TextThatIsMadeOfIdsIsExactForAnotherProgram) {
  const std::string text =
      "a\x1b[31m\r\n\xc2\x9b"
      "b";
  project_.write("odd.txt", text);
  const auto ids = project_.run({"tokenize", "models/europa-5m", "odd.txt"});
  ASSERT_EQ(ids.code, 0) << ids.err;
  const auto again = test::run({"detokenize", "models/europa-5m"}, ids.out, project_.path());
  EXPECT_EQ(again.out, text);
}

}  // namespace
}  // namespace retort::test
