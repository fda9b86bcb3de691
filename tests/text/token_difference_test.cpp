// Tokenizers whose ids mean the same bytes, whatever else is in their files.
#include "retort/text/token_difference.h"

#include <gtest/gtest.h>

#include <fstream>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;

class TokenDifferenceTest : public ::testing::Test {
 protected:
  Tokenizer tokenizer(const Json& json) {
    const auto path = directory_ / (std::to_string(number_++) + ".json");
    std::ofstream(path) << json.dump();
    return Tokenizer::from_file(path);
  }
  static Json byte_level(const Json& vocabulary) {
    const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
    return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}},
            {"pre_tokenizer", bytes},
            {"decoder", bytes}};
  }
  static Json sentence_piece(const Json& vocabulary) {
    return {{"model",
             {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}, {"byte_fallback", true}}}};
  }

  test::TemporaryDirectory directory_;
  int number_ = 0;
};

TEST_F(TokenDifferenceTest, IsNoneBetweenAlphabetsThatMeanTheSameBytes) {
  const auto bytes = tokenizer(byte_level({{"a", 0}, {"\u0120b", 1}, {"\u00E3", 2}, {"\u010A", 3}}));
  const auto pieces = tokenizer(sentence_piece({{"a", 0}, {"\u2581b", 1}, {"<0xE3>", 2}, {"<0x0A>", 3}}));
  EXPECT_FALSE(first_difference(bytes, pieces));
  EXPECT_EQ(bytes.token_bytes(1), " b");
  EXPECT_EQ(bytes.token_bytes(2), "\xE3");
  EXPECT_EQ(bytes.token_bytes(4), std::nullopt);
  EXPECT_EQ(bytes.token_bytes(-1), std::nullopt);
}

TEST_F(TokenDifferenceTest, NamesTheFirstIdWithBothStrings) {
  const auto one = tokenizer(byte_level({{"a", 0}, {"b", 1}, {"\u0120c", 2}, {"d", 3}}));
  const auto other = tokenizer(byte_level({{"a", 0}, {"b", 1}, {"c", 2}, {"e", 3}}));
  const auto found = first_difference(one, other);
  ASSERT_TRUE(found) << "four tokens each";
  EXPECT_EQ(found->id, 2);
  EXPECT_EQ(found->first, " c");
  EXPECT_EQ(found->second, "c");
  const auto longer = tokenizer(byte_level({{"a", 0}, {"b", 1}, {"\u0120c", 2}, {"d", 3}, {"e", 4}}));
  const auto more = first_difference(one, longer);
  ASSERT_TRUE(more) << "a token that one of them lacks";
  EXPECT_EQ(more->id, 4);
  EXPECT_EQ(more->first, std::nullopt);
  EXPECT_EQ(more->second, "e");
}

TEST_F(TokenDifferenceTest, TakesAddedTokensByTheirContent) {
  auto json = byte_level({{"a", 0}, {"<s>", 1}});
  const auto plain = tokenizer(json);
  json["added_tokens"] = {{{"id", 1}, {"content", "<s>"}, {"special", true}, {"normalized", false}}};
  EXPECT_FALSE(first_difference(plain, tokenizer(json)));
  json["added_tokens"].push_back({{"id", 2}, {"content", "\u0120x"}, {"special", false}});
  const auto added = tokenizer(json);
  EXPECT_EQ(added.token_bytes(2), "\u0120x") << "it is cut out before the byte-level alphabet";
}

TEST_F(TokenDifferenceTest, TellsTheTokenizersOfTheSharedDataApart) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  const auto load = [&](const char* path) { return Tokenizer::from_file(shared / "tokenizers" / path); };
  const auto mistral = load("mistral7b"), smollm = load("smollm2"), tekken = load("tekken");
  EXPECT_FALSE(first_difference(mistral, mistral));
  EXPECT_TRUE(first_difference(mistral, tekken));
  // SmolLM2 with two of its tokens exchanged: as many tokens, and most of them the same.
  auto json = Json::parse(base::read_file(shared / "tokenizers/smollm2/tokenizer.json"));
  auto& vocabulary = json["model"]["vocab"];
  const auto a = smollm.id_to_token(4000), b = smollm.id_to_token(40000);
  std::swap(vocabulary[a], vocabulary[b]);
  const auto found = first_difference(smollm, tokenizer(json));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, 4000);
  json = Json::parse(base::read_file(shared / "tokenizers/smollm2/tokenizer.json"));
  json["model"]["merges"].erase(json["model"]["merges"].size() - 1);
  EXPECT_FALSE(first_difference(smollm, tokenizer(json))) << "another file with the same tokens";
}

}  // namespace
}  // namespace retort::text
