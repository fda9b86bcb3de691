// Files beside tokenizer.json that give tokens other ids are named.
#include "retort/text/tokenizer_conflicts.h"

#include <gtest/gtest.h>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/text/tokenizer.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;

// A field of a protocol buffer that holds bytes.
std::string field_one(const std::string& bytes) {
  return std::string("\x0a") + static_cast<char>(bytes.size()) + bytes;
}

class Conflicts : public ::testing::Test {
 protected:
  void SetUp() override {
    write("tokenizer.json",
          base::read_file(test::oracles("text") / "made" / "spm-fallback" / "tokenizer.json"));
    const Tokenizer tokenizer = Tokenizer::from_file(directory_.path());
    for (std::int32_t id = 0; id < 5; ++id) tokens_.push_back(tokenizer.id_to_token(id));
  }
  void write(const char* name, const std::string& content) const {
    base::write_file_atomically(directory_ / name, content);
  }
  // tokenizer.model with these pieces.
  void write_pieces(const std::vector<std::string>& pieces) const {
    std::string file;
    for (const auto& piece : pieces) file += field_one(field_one(piece));
    write("tokenizer.model", file);
  }
  std::vector<std::string> found() const { return tokenizer_conflicts(directory_.path()); }

  test::TemporaryDirectory directory_;
  std::vector<std::string> tokens_;  ///< the first ones
};

TEST_F(Conflicts, AreNoneWhereAllFilesGiveTheSameIds) {
  EXPECT_TRUE(found().empty());
  write_pieces(tokens_);
  write("added_tokens.json", Json{{tokens_[1], 1}}.dump());
  write("tokenizer_config.json",
        Json{{"added_tokens_decoder", {{"2", {{"content", tokens_[2]}}}}}, {"chat_template", "a"}}.dump());
  write("chat_template.jinja", "a");
  EXPECT_TRUE(found().empty()) << found().front();
}

TEST_F(Conflicts, NameTheFirstTokenAndCountTheOthers) {
  auto pieces = tokens_;
  std::swap(pieces[3], pieces[4]);
  write_pieces(pieces);
  ASSERT_EQ(found().size(), 1U);
  EXPECT_SAYS(found()[0], "\"tokenizer.model\" has other ids than \"tokenizer.json\", which is read");
  EXPECT_SAYS(found()[0], "is 3 there and 4 here, and 1 more differ");
}

TEST_F(Conflicts, NameAddedTokensThatTheTokenizerLacks) {
  write("added_tokens.json", R"({"<|new|>": 5000})");
  write("tokenizer_config.json",
        R"({"added_tokens_decoder": {"5001": {"content": "<|newer|>"}}, "chat_template": "a"})");
  write("chat_template.jinja", "b");
  ASSERT_EQ(found().size(), 3U);
  EXPECT_SAYS(found()[0], "\"added_tokens.json\" has other ids");
  EXPECT_SAYS(found()[0], "\"<|new|>\" is 5000 there and nothing here; other programs");
  EXPECT_SAYS(found()[1], "\"<|newer|>\" is 5001 there");
  EXPECT_SAYS(found()[2], "the chat templates");
}

TEST_F(Conflicts, LeaveDamagedFilesToWhoeverReadsThem) {
  for (const char* name : {"tokenizer.model", "added_tokens.json", "tokenizer_config.json"})
    for (const char* text : {"", "{", "[]", R"({"added_tokens_decoder": [1]})",
                             R"({"added_tokens_decoder": {"x": 1, "7": {"content": 2}}})"}) {
      write(name, text);
      EXPECT_NO_THROW(found()) << name << text;
    }
  write("tokenizer.json", "{");
  write("added_tokens.json", R"({"<|new|>": 5000})");
  EXPECT_TRUE(found().empty());
}

}  // namespace
}  // namespace retort::text
