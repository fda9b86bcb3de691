// tokenize and detokenize as a script uses them.
#include <gtest/gtest.h>

#include <fstream>

#include "cli/program.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::test {
namespace {

const std::string kModel = "models/europa-5m";
const std::string kText = "H\xC3\xA9llo  world,\n\n\tzw\xC3\xB6lf \xF0\x9F\x98\x80 tokens.\n";

TEST(Tokenize, RoundTripsStandardInputByteForByte) {
  const Finished json = run({"tokenize", kModel, "--json"}, kText);
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.out.rfind("{\"ids\": [", 0), 0U) << json.out;
  const Finished plain = run({"tokenize", kModel}, kText);

  EXPECT_EQ(run({"detokenize", kModel}, json.out).out, kText);
  EXPECT_EQ(run({"detokenize", kModel}, plain.out).out, kText);
  EXPECT_EQ(run({"detokenize", kModel, "--json"}, json.out).out, base::Json({{"text", kText}}).dump() + "\n");
}

TEST(Tokenize, GivesTheIdsOfTheModelsReference) {
  const base::Json reference = base::Json::parse(base::read_file(source() / kModel / "reference.json"));
  for (const auto& one : reference.at("greedy")) {
    base::Json ids =
        base::Json::parse(run({"tokenize", kModel, "--no-special", "--json"}, one.at("prompt")).out)["ids"];
    ids.insert(ids.begin(), 0);  // the reference begins with <|endoftext|>
    const base::Json& expected = one.at("ids");
    ASSERT_LE(ids.size(), expected.size());
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], expected[i]) << one.at("prompt");
  }
}

TEST(Tokenize, TakesALineOfOutputPerDocument) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "a.jsonl") << "{\"text\": \"one\"}\n\n{\"text\": \"two\"}\n";
  std::ofstream(directory.path() / "b.txt") << "one--two--one";
  const std::string model = (source() / kModel).string();
  const auto lines = [&](const std::vector<std::string>& arguments, const std::string& input = "") {
    std::vector<std::string> all{"tokenize", model};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all, input, directory.path()).out;
  };

  const std::string one = lines({}, "one");
  const std::string two = lines({}, "two");
  EXPECT_EQ(lines({"a.jsonl"}), one + two);
  EXPECT_EQ(lines({"b.txt", "--separator", "--"}), one + two + one);
  EXPECT_EQ(lines({"a.jsonl", "-"}, "two"), one + two + two);
  EXPECT_EQ(lines({"--field", "body"}, "{\"body\": \"two\"}\n{\"body\": \"one\"}"), two + one);
  EXPECT_EQ(lines({"--separator", "\\n"}, "two\none\n"), two + one);
}

TEST(Tokenize, NamesLineAndByteOfWhatIsWrong) {
  const Finished line = run({"tokenize", kModel, "--field", "text"}, "{\"text\": \"a\"}\n{\"text\": 3}\n");
  EXPECT_EQ(line.code, 3);
  EXPECT_SAYS(line.err, "line 2, byte");

  for (const char* ids :
       {"1 2 x", "1 -2", "[1, 2.5]", "{\"id\": [1]}", "[1, 99999999]", "{\"ids\": [1]", "7000000000", "[[1]]",
        "{\"ids\": 5}", "{\"x\": {\"ids\": [1]}}", "{\"ids\": [1, {}]}"}) {
    const Finished wrong = run({"detokenize", kModel}, ids);
    EXPECT_EQ(wrong.code, 3) << ids;
    EXPECT_NE(wrong.err, "") << ids;
  }
}

TEST(Tokenize, TakesNoDirectory) {
  const TemporaryDirectory directory;
  const Finished finished = run({"tokenize", kModel, directory.path().string()});
  EXPECT_EQ(finished.code, 3);
  EXPECT_SAYS(finished.err, "is a directory; name its files.");
}

TEST(Tokenize, FailsWhenTheDiskIsFull) {
  const std::string program = std::getenv("RETORT_PROGRAM");
  const std::string command = "cd '" + source().string() + "' && echo text | '" + program + "' tokenize " +
                              kModel + " >/dev/full 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 7);
}

}  // namespace
}  // namespace retort::test
