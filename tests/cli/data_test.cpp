// data inspect as a person uses it.
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

class DataInspect : public ::testing::Test {
 protected:
  DataInspect() {
    const auto model = source() / "models" / "europa-5m";
    std::filesystem::create_directory(path("model"));
    for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(model / name, path("model") / name);
    write("model/chat_template.jinja",
          "{% for m in messages %}{{ m.role }}: {{ m.content }}<|endoftext|>\n{% endfor %}"
          "{% if add_generation_prompt %}assistant: {% endif %}");
    write("chats.jsonl",
          "{\"prompt\": \"Hello\", \"completion\": \"Hi \\u001b[31m\"}\n"
          "{\"prompt\": \"Hello\", \"completion\": \"Hi \\u001b[31m\"}\nbad\n");
    write("notes.txt", "one;two;three");
    write("my.yaml",
          "version: 1\ndata:\n  chats: {path: chats.jsonl, chat: true}\n  notes: {path: notes.txt, "
          "separator: \";\"}\n"
          "stages:\n  - {name: t, kind: finetune, from: ./model, data: [chats, notes], tokens: 1k, "
          "packing: {sequence_length: 32}}\n");
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
  }
  Finished inspect(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"data", "inspect"});
    return run(arguments, "", directory_.path());
  }

  TemporaryDirectory directory_;
};

TEST_F(DataInspect, ReadsTheSourcesOfARecipeAsItsStagesDo) {
  const auto shown = inspect({"my.yaml"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  for (const char* part :
       {"chats: 1 file of conversations", "notes: 1 file of text", "2, ", "1 documents are exact copies",
        "bad lines   1; the first: ", "chats.jsonl, line 3", " of 32 tokens", "are masked",
        "user: Hello<|endoftext|>\nassistant: [[Hi \\x1b[31m<|endoftext|>]]"})
    EXPECT_SAYS(shown.out, part);
  const auto json = base::Json::parse(inspect({"my.yaml", "--source", "notes", "--json"}).out);
  ASSERT_EQ(json.at("sources").size(), 1U);
  EXPECT_EQ(json.at("sources")[0].at("documents"), 3);
  EXPECT_EQ(json.at("sources")[0].at("samples").size(), 3U);
}

TEST_F(DataInspect, ReadsFilesWithAndWithoutAModel) {
  const auto plain = inspect({"notes.txt", "--separator", ";"});
  EXPECT_SAYS(plain.out, "in bytes: 3 to 5");
  EXPECT_SAYS(plain.out, "--model names the model");
  const auto with = inspect({"notes.txt", "--model", "model", "--samples", "1"});
  EXPECT_SAYS(with.out, "| one;two;three");
}

TEST_F(DataInspect, WritesAPageAndReplacesNothingElse) {
  ASSERT_EQ(inspect({"my.yaml", "--html", "text.html"}).code, 0);
  EXPECT_SAYS(base::read_file(path("text.html")), "<mark>Hi ");
  EXPECT_EQ(inspect({"my.yaml", "--html", "text.html"}).code, 0);
  write("mine.html", "mine");
  EXPECT_EQ(inspect({"my.yaml", "--html", "mine.html"}).code, 2);
}

TEST_F(DataInspect, SaysWhatIsWrong) {
  EXPECT_SAYS(inspect({"my.yaml", "--source", "x"}).err, "has no such source");
  write("written.yaml",
        "version: 1\ndata: {made: {generated: {model: ./model, tokens: 1k}}}\nstages:\n"
        "  - {name: t, kind: finetune, from: ./model, data: [made], tokens: 1k}\n");
  EXPECT_SAYS(inspect({"written.yaml"}).err, "found one that a model writes in a run; inspect text/made/");
  EXPECT_SAYS(inspect({"my.yaml", "--chat"}).err, "a recipe says how its text is read");
  EXPECT_SAYS(inspect({"notes.txt", "--source", "x"}).err, "found files");
  EXPECT_SAYS(inspect({"notes.txt", "--chat"}).err, "found plain text in");
  std::filesystem::remove(path("model/chat_template.jinja"));
  const auto without = inspect({"my.yaml"});
  EXPECT_EQ(without.code, 4);
  EXPECT_SAYS(without.err, "expected a chat template");
}

}  // namespace
}  // namespace retort::test
