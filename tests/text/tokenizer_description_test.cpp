#include "retort/text/tokenizer_description.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "retort/architecture/families.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/text/tokenizer.h"
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

// By kind of model and class, as transformers loaded the same files.
TEST_F(Description, SaysOfEveryClassWhetherTransformersFollowsTheFile) {
  std::size_t rows = 0, others = 0;
  for (const Json& row : base::parse_json(base::read_file(test::oracles("text") / "classes.json"))) {
    SCOPED_TRACE(row.dump());
    const auto families = architecture::families();
    const auto family = std::find_if(families.begin(), families.end(), [&](const auto* f) {
      return row.at("model_type").get<std::string>() == f->model_type;
    });
    ASSERT_NE(family, families.end());
    Json tokenizer_config = Json::object();
    if (!row.at("tokenizer_class").is_null())
      tokenizer_config = {{"tokenizer_class", row.at("tokenizer_class")}};
    const auto notes = of(row.at("tokenizer"), tokenizer_config,
                          {.tokenizer_class = (*family)->tokenizer_class,
                           .tokenizer_class_is_fixed = (*family)->tokenizer_class_is_fixed})
                           .notes;
    EXPECT_EQ(notes.empty(), row.at("follows_file").get<bool>());
    ++rows;
    others += notes.size();
  }
  EXPECT_GT(others, 20U);
  EXPECT_GT(rows, others + 20U);
}

// Beside a tokenizer.json transformers reads neither, and takes the post-processor of the file.
TEST_F(Description, TokensAroundATextAreThoseOfTransformersWhateverAddBosTokenSays) {
  for (const Json& row : base::parse_json(base::read_file(test::oracles("text") / "bos.json"))) {
    SCOPED_TRACE(row.dump());
    (void)of(row.at("tokenizer"), row.at("tokenizer_config"));
    const auto ids = Tokenizer::from_file(directory_.path()).encode(row.at("text").get<std::string>());
    EXPECT_EQ(Json(ids), row.at("ids"));
  }
}

TEST_F(Description, SaysWhereTransformersTakesAnotherTokenizer) {
  const Json named = {{"tokenizer_class", "LlamaTokenizer"}};
  ASSERT_EQ(of("spm-fallback", named).notes.size(), 1U);
  EXPECT_SAYS(of("spm-fallback", named).notes.front(),
              "as a LlamaTokenizer, with the steps Metaspace, BPE in place of those of tokenizer.json");
  EXPECT_TRUE(of("spm-fallback", {}).notes.empty());
  EXPECT_EQ(of("spm-fallback", {}, {}, named).notes.size(), 1U) << "named by config.json";
  EXPECT_TRUE(of("metaspace-first-whole", named).notes.empty());
  EXPECT_TRUE(of("qwen2-nfc", named).notes.empty()) << "of bytes, with a normalizer";
  EXPECT_SAYS(of("digits", {{"tokenizer_class", "GPT2TokenizerFast"}}).notes.at(0),
              "as a GPT2Tokenizer, with the steps ByteLevel (gpt2), BPE in place");
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

TEST_F(Description, AMendedExpressionCutsAsTransformersDoes) {
  (void)of("llama3", {{"fix_mistral_regex", true}});
  base::write_file_atomically(directory_ / "tokenizer.json", large("llama3"));
  const auto tokenizer = Tokenizer::from_file(directory_.path());
  for (const Json& row : base::parse_json(base::read_file(test::oracles("text") / "mended.json"))) {
    SCOPED_TRACE(row.dump());
    EXPECT_EQ(Json(tokenizer.encode(row.at("text").get<std::string>())), row.at("ids"));
  }
}

TEST_F(Description, SaysWhereTextIsCutUnlikeMistralDoes) {
  const auto notes = [&](const std::string& made, const std::string& version, bool cuts_by_tekken,
                         const Json& tokenizer_config) {
    (void)of(made, tokenizer_config, {}, {{"transformers_version", version}});
    base::write_file_atomically(directory_ / "tokenizer.json", large(made));
    return describe_tokenizer(directory_.path(), {.cuts_by_tekken = cuts_by_tekken}).notes;
  };
  const auto of_old = notes("llama3", "4.57.1", true, {});
  ASSERT_EQ(of_old.size(), 1U);
  EXPECT_SAYS(of_old.front(), "set fix_mistral_regex to true");
  EXPECT_TRUE(notes("tekken", "4.57.1", true, {}).empty());
  EXPECT_TRUE(notes("llama3", "4.57.1", false, {}).empty());
  EXPECT_TRUE(notes("llama3", "5.1.0", true, {}).empty());
  EXPECT_TRUE(notes("llama3", "4.57.1", true, {{"fix_mistral_regex", true}}).empty());
  EXPECT_EQ(describe_tokenizer(directory_.path()).steps, (Steps{"Split (tekken)", "ByteLevel", "BPE"}));
}

}  // namespace
}  // namespace retort::text
