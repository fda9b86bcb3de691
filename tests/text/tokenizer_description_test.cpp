#include "retort/text/tokenizer_description.h"

#include <gtest/gtest.h>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;
using Steps = std::vector<std::string>;

class Description : public ::testing::Test {
 protected:
  TokenizerDescription of(const std::string& made, const Json& tokenizer_config = {},
                          const TokenizerHabits& habits = {}, const Json& config = {}) const {
    base::write_file_atomically(directory_ / "tokenizer.json",
                                base::read_file(test::oracles("text") / "made" / made / "tokenizer.json"));
    base::write_file_atomically(directory_ / "config.json", config.dump());
    base::write_file_atomically(directory_ / "tokenizer_config.json", tokenizer_config.dump());
    return describe_tokenizer(directory_.path(), habits);
  }
  test::TemporaryDirectory directory_;
};

TEST_F(Description, NamesTheStepsFromTextToIds) {
  EXPECT_EQ(of("qwen2-nfc").steps, (Steps{"NFC", "Split (qwen2)", "ByteLevel", "BPE"}));
  EXPECT_EQ(of("digits").steps, (Steps{"Digits", "ByteLevel (gpt2)", "BPE"}));
  EXPECT_EQ(of("spm-fallback").steps, (Steps{"Prepend", "Replace \" \"", "BPE"}));
  EXPECT_EQ(of("deepseek3").steps.at(2), "Split (deepseek3)");
  EXPECT_EQ(of("deepseek3").file, "tokenizer.json");
}

TEST_F(Description, SaysWhereTransformersTakesAnotherTokenizer) {
  const Json named = {{"tokenizer_class", "LlamaTokenizer"}};
  const TokenizerHabits rebuilds{.rebuilt_class = "LlamaTokenizer"};
  ASSERT_EQ(of("spm-fallback", named, rebuilds).notes.size(), 1U);
  EXPECT_SAYS(of("spm-fallback", named, rebuilds).notes.front(), "begins with a space has other ids");
  EXPECT_EQ(of("spm-fallback", {{"tokenizer_class", "LlamaTokenizerFast"}}, rebuilds).notes.size(), 1U);
  EXPECT_TRUE(of("spm-fallback", {}, rebuilds).notes.empty());
  EXPECT_TRUE(of("spm-fallback", named).notes.empty());
  EXPECT_TRUE(of("metaspace-first-whole", named, rebuilds).notes.empty());
  EXPECT_TRUE(of("qwen2-nfc", named, rebuilds).notes.empty()) << "of bytes, with a normalizer";
}

// A tokenizer of 100,001 tokens, most of which nothing makes.
std::string large(const std::string& made) {
  Json json = base::parse_json(base::read_file(test::oracles("text") / "made" / made / "tokenizer.json"));
  auto& vocab = json["model"]["vocab"].get_ref<Json::object_t&>();
  for (const Json& token : json["added_tokens"])
    if (!json["model"]["vocab"].contains(token["content"].get<std::string>()))
      vocab.emplace_back(token["content"].get<std::string>(), token["id"]);
  for (std::size_t id = json["added_tokens"].back()["id"].get<std::size_t>() + 1; id <= 100'000; ++id)
    vocab.emplace_back("x" + std::to_string(id), id);
  return json.dump();
}

TEST_F(Description, SaysWhereTextIsCutUnlikeMistralDoes) {
  const auto notes = [&](const std::string& made, const std::string& version, bool cuts_by_tekken,
                         const Json& tokenizer_config) {
    (void)of(made, tokenizer_config, {}, {{"transformers_version", version}});
    base::write_file_atomically(directory_ / "tokenizer.json", large(made));
    return describe_tokenizer(directory_.path(), {.cuts_by_tekken = cuts_by_tekken}).notes;
  };
  ASSERT_EQ(notes("llama3", "4.57.1", true, {}).size(), 1U);
  EXPECT_SAYS(notes("llama3", "4.57.1", true, {}).front(), "set fix_mistral_regex to true");
  EXPECT_TRUE(notes("tekken", "4.57.1", true, {}).empty());
  EXPECT_TRUE(notes("llama3", "4.57.1", false, {}).empty());
  EXPECT_TRUE(notes("llama3", "5.1.0", true, {}).empty());
  EXPECT_TRUE(notes("llama3", "4.57.1", true, {{"fix_mistral_regex", true}}).empty());
  EXPECT_EQ(describe_tokenizer(directory_.path()).steps, (Steps{"Split (tekken)", "ByteLevel", "BPE"}));
}

}  // namespace
}  // namespace retort::text
