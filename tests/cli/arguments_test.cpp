// Help, wrong command lines and recipes: what is said, where, with which exit code.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "cli/program.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::test {
namespace {

TEST(Help, OfEveryCommandHasExamples) {
  for (const char* command :
       {"run", "eval", "generate", "tokenize", "detokenize", "info", "bench", "recipe"}) {
    const Finished help = run({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_SAYS(help.out, "Examples:");
    EXPECT_SAYS(help.out, std::string("retort ") + command);
    EXPECT_EQ(help.err, "");
    EXPECT_SAYS(run({"--help"}).out, command);
  }
}

TEST(Help, IsACommandToo) {
  EXPECT_EQ(run({"help", "run"}).out, run({"run", "--help"}).out);
  EXPECT_EQ(run({"help", "bench", "gemm"}).out, run({"bench", "gemm", "--help"}).out);
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  const auto wrong = run({"help", "genrate"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_SAYS(wrong.err, "help: expected a command, found 'genrate'; did you mean 'generate'?");
  const auto page = run({"help", "--man"}).out;
  EXPECT_SAYS(page, ".TH RETORT 1");
  EXPECT_SAYS(page, ".SH \"\\&retort bench gemm\"");
  EXPECT_SAYS(page, "\\fB\\&\\-\\-dry\\-run\\fR");
}

/// What bash offers for the last of `words`.
std::string completed(const TemporaryDirectory& directory, const std::string& words) {
  base::write_file_atomically(
      directory / "ask.sh",
      run({"completion", "bash"}).out + "COMP_WORDS=(retort " + words +
          ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_retort\necho \"${COMPREPLY[*]}\"\n");
  FILE* pipe = ::popen(("bash " + (directory / "ask.sh").string() + " 2>&1").c_str(), "r");
  std::array<char, 4096> line{};
  const bool read = std::fgets(line.data(), line.size(), pipe) != nullptr;
  ::pclose(pipe);
  return read ? line.data() : "";
}

TEST(Completion, KnowsCommandsAndTheirOptions) {
  const TemporaryDirectory directory;
  EXPECT_EQ(completed(directory, "gen"), "generate\n");
  EXPECT_EQ(completed(directory, "run --dry"), "--dry-run\n");
  EXPECT_EQ(completed(directory, "bench gem"), "gemm\n");
  EXPECT_EQ(completed(directory, "run my.yaml --print"), "--print-recipe\n");
  EXPECT_EQ(completed(directory, "run my.y"), "\n") << "files are the shell's";
  EXPECT_SAYS(run({"completion", "fish"}).out,
              "complete -c retort -n '__fish_seen_subcommand_from run' -l set");
  EXPECT_SAYS(run({"completion", "zsh"}).out, "#compdef retort");
  EXPECT_EQ(run({"completion", "csh"}).code, 2);
}

TEST(Version, NamesTheCompilerAndTheCommit) {
  EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
  const Finished version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_SAYS(version.out, "(git ");
}

/// What the loader opened for the program, by its own trace.
std::string loaded_by(const std::vector<std::string>& arguments) {
  const TemporaryDirectory directory;
  const std::string trace = directory / "trace";
  run(arguments, "", {}, [&] {
    ::setenv("LD_DEBUG", "files", 1);
    ::setenv("LD_DEBUG_OUTPUT", trace.c_str(), 1);
  });
  std::string opened;
  for (const auto& file : std::filesystem::directory_iterator(directory.path()))
    opened += base::read_file(file.path());
  return opened;
}

TEST(Start, WaitsForTorchOnlyWhereSomethingIsComputed) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"--version"},
                                                    {"run", "--help"},
                                                    {"bench", "gemm", "--help"},
                                                    {"genrate"},
                                                    {"recipe", "keys"},
                                                    {"run", "--print-recipe"},
                                                    {"run", "--set", "stages.student.optim.lrr=1"},
                                                    {"info", "models/europa-5m"},
                                                    {"tokenize", "models/europa-5m"}}) {
    const std::string opened = loaded_by(arguments);
    SCOPED_TRACE(arguments.front());
    EXPECT_SAYS(opened, "libstdc++");
    for (const char* library : {"libtorch", "libc10", "libgomp", "libretort"})
      EXPECT_EQ(opened.find(library), std::string::npos) << library;
  }
  const std::string opened =
      loaded_by({"generate", "models/europa-5m", "--prompt", "The", "--max-new-tokens", "1"});
  EXPECT_SAYS(opened, "libretort");
  EXPECT_SAYS(opened, "libtorch_cpu");
}

struct Wrong {
  std::vector<std::string> arguments;
  int code;
  const char* message;
};

TEST(CommandLine, MistakesAreOneSentenceOnStandardErrorWithTheirCode) {
  const Wrong cases[] = {
      {{}, 2, "see retort --help"},
      {{"eval", "models/europa-5m", "--text", "README.md", "--rolling", "--no-bos"}, 2, "leave one out"},
      {{"genrate"}, 2, "unknown command 'genrate'; did you mean 'generate'?"},
      {{"run", "--bogus"}, 2, "see retort run --help"},
      {{"run", "--device", "tpu"}, 2, "--device"},
      {{"run", "no/such.yaml"}, 2, "no/such.yaml: cannot be opened"},
      {{"run", "--stage", "studnt", "--print-recipe"}, 2, "did you mean 'student'?"},
      {{"run", "--set", "stages.student.optim.lrr=1"},
       2,
       "--set stages.student.optim.lrr=1: stages.student.optim.lrr: "
       "unknown key; did you mean 'lr'?"},
      {{"generate", "models/europa-5m"}, 2, "--prompt"},
      {{"generate", "models/europa-5m", "--prompt", "x", "--temperature", "-1"}, 2, "--temperature"},
      {{"eval", "models/europa-5m", "--text", "README.md", "--context", "many"}, 2, "--context"},
      {{"info", "no/such/directory"},
       4,
       "no such file or directory; give the directory of a Hugging Face model"},
      {{"info", "HuggingFaceTB/SmolLM2-135M"}, 4, "hf download HuggingFaceTB/SmolLM2-135M --local-dir"},
      {{"info", "docs"}, 4, "expected a GGUF file or a directory with config.json"},
      {{"tokenize", "models/europa-5m", "no/such.txt"}, 3, "there is no such file"},
      {{"tokenize", "no/such/model"}, 7, "No such file or directory"},
  };
  for (const Wrong& wrong : cases) {
    const Finished finished = run(wrong.arguments);
    EXPECT_EQ(finished.code, wrong.code) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_SAYS(finished.err, wrong.message);
    EXPECT_EQ(finished.err.rfind("retort: error: ", 0), 0U) << finished.err;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
  }
}

TEST(Recipe, MistakesComeAllAtOnceWithLines) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "r.yaml")
      << "version: 1\ndata:\n  a: {pth: x}\nstages:\n"
         "  - {name: s, kind: finetune, from: m/x, data: [b], tokens: 0}\n";
  const Finished finished = run({"run", "r.yaml"}, "", directory.path());

  EXPECT_EQ(finished.code, 2);
  EXPECT_SAYS(finished.err, "r.yaml: 4 mistakes");
  EXPECT_SAYS(finished.err, "r.yaml:3: data.a.path: missing");
  EXPECT_SAYS(finished.err, "r.yaml:3: data.a.pth: unknown key; did you mean 'path'?");
  EXPECT_SAYS(finished.err, "r.yaml:5: stages.s.data: 'b' is not among the sources");
  EXPECT_SAYS(finished.err, "r.yaml:5: stages.s.tokens: expected more than 0");
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "runs"));
}

TEST(Recipe, PrintedOneIsReusableAsInput) {
  const TemporaryDirectory directory;
  const Finished printed =
      run({"run", "--print-recipe", "--device", "cpu", "--set", "stages.student.tokens=7k"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_SAYS(printed.out, "tokens: 7000\n");
  std::ofstream(directory.path() / "again.yaml") << printed.out;

  EXPECT_EQ(run({"run", "again.yaml", "--print-recipe"}, "", directory.path()).out, printed.out);
  EXPECT_EQ(run({"recipe", "show", "again.yaml"}, "", directory.path()).out, printed.out);
}

TEST(Recipe, QuickstartInsideTheProgramIsTheOneInTheRepository) {
  const std::string inside = run({"recipe", "show"}).out;
  EXPECT_EQ(run({"recipe", "show", "recipes/quickstart.yaml"}).out, inside);
  EXPECT_EQ(run({"recipe", "show", "quickstart"}).out, inside);
  EXPECT_SAYS(run({"recipe", "show", "--source"}).out, "# Launch   retort run");
}

// Nobody starts those that take hours to see whether their keys still exist.
TEST(Recipe, EveryOneInTheRepositoryIsRead) {
  int recipes = 0;
  for (const char* folder : {"recipes", "benchmarks", "models"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source() / folder)) {
      if (entry.path().extension() != ".yaml" ||
          base::read_file(entry.path()).find("\nstages:") == std::string::npos)
        continue;
      const auto shown = run({"recipe", "show", entry.path().string()});
      EXPECT_EQ(shown.code, 0) << entry.path() << "\n" << shown.err;
      ++recipes;
    }
  EXPECT_GE(recipes, 20);
}

TEST(Recipe, KeysAreDocumented) {
  const Finished keys = run({"recipe", "keys"});
  EXPECT_EQ(keys.code, 0);
  EXPECT_SAYS(keys.out, "\nstages.<name>.optim.lr\n");
  EXPECT_SAYS(base::read_file(source() / "docs" / "recipes.md"), keys.out) << "print them there again";
}

// Of keys by the last part of their name; a name may stand for several.
std::multimap<std::string, std::string> defaults_of(const std::string& keys) {
  std::multimap<std::string, std::string> defaults;
  const std::regex key("\n[a-z_.<>\\[\\]]*\\.([a-z_0-9]+)\n[^\n]*, default ([^:\n]+):");
  for (std::sregex_iterator at(keys.begin(), keys.end(), key), end; at != end; ++at)
    defaults.emplace((*at)[1], (*at)[2]);
  return defaults;
}

// Where the text around the list says what a default is, in a sentence such as "The default is `key: value`".
TEST(Recipe, DefaultsInTheTextAreThoseOfTheProgram) {
  const auto defaults = defaults_of(run({"recipe", "keys"}).out);
  EXPECT_GT(defaults.size(), 60U);
  const std::string page = base::read_file(source() / "docs" / "recipes.md");
  const std::string text =
      std::regex_replace(page.substr(0, page.find("## All keys")), std::regex("\n *"), " ");
  const std::regex claim(
      "(default|unless you say)[^.`]*`([a-z_0-9]+): ([^`]+)`|`([a-z_0-9]+): ([^`]+)`[^.`]*(unless you say)");
  int claims = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), claim), end; at != end; ++at, ++claims) {
    const std::string key = (*at)[2].matched ? (*at)[2] : (*at)[4];
    const std::string value = (*at)[2].matched ? (*at)[3] : (*at)[5];
    const auto [first, last] = defaults.equal_range(key);
    EXPECT_TRUE(std::any_of(first, last, [&](const auto& one) { return one.second == value; })) << at->str();
  }
  EXPECT_GE(claims, 1);
}

}  // namespace
}  // namespace retort::test
