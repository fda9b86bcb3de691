// tokenizer.model alone, compared with SentencePiece itself.
#include <gtest/gtest.h>

#include "oracle_cases.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/model_directory.h"
#include "retort/text/tokenizer.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;
using base::ModelError;

std::string model_of(const std::string& name) {
  return base::read_file(test::oracles("text") / "sentencepiece" / name / "tokenizer.model");
}

class SentencePiece : public ::testing::Test {
 protected:
  Tokenizer read(const std::string& model, const Json& config = {}, const Json& added = {}) const {
    base::write_file_atomically(directory_ / "tokenizer.model", model);
    if (!config.is_null()) base::write_file_atomically(directory_ / "tokenizer_config.json", config.dump());
    if (!added.is_null()) base::write_file_atomically(directory_ / "added_tokens.json", added.dump());
    return Tokenizer::from_file(directory_.path());
  }
  std::string refusal(const std::string& model, const Json& config = {}, const Json& added = {}) const {
    return test::message_of<ModelError>([&] { (void)read(model, config, added); });
  }
  void expect_cases(const std::string& name) const {
    SCOPED_TRACE(name);
    const auto tokenizer = read(model_of(name));
    std::size_t cases = 0, decoded = 0;
    for (const auto& line : test::lines_of(test::oracles("text") / "sentencepiece" / name / "cases.jsonl")) {
      const Json one = base::parse_json(line);
      const auto text = one.at("text").get<std::string>();
      const auto ids = one.at("ids").get<std::vector<std::int32_t>>();
      EXPECT_EQ(tokenizer.encode(text, false), ids) << testing::PrintToString(text);
      ++cases;
      if (!one.contains("decoded")) continue;
      EXPECT_EQ(tokenizer.decode(ids), one.at("decoded").get<std::string>());
      ++decoded;
    }
    EXPECT_GE(cases, 1000U);
    EXPECT_GE(decoded, 250U);
  }
  test::TemporaryDirectory directory_;
};

TEST_F(SentencePiece, GivesTheIdsAndTextsOfSentencePiece) {
  for (const char* name : {"llama", "gemma", "split-digits", "no-bytes"}) expect_cases(name);
}

TEST_F(SentencePiece, GivesTheIdsOfSentencePieceForTheTokenizerOfAKnownModel) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  expect_cases("mistral7b");
}

TEST_F(SentencePiece, TakesWhatStandsAroundATextFromTheFilesBesideIt) {
  const std::string model = model_of("llama");
  EXPECT_EQ(read(model).special_prefix(), std::vector<std::int32_t>{1});
  EXPECT_TRUE(read(model).special_suffix().empty());
  const auto both = read(model, {{"add_bos_token", false}, {"add_eos_token", true}});
  EXPECT_TRUE(both.special_prefix().empty());
  EXPECT_EQ(both.special_suffix(), std::vector<std::int32_t>{2});
}

TEST_F(SentencePiece, TakesTokensFromTheFilesBesideIt) {
  const std::string model = model_of("llama");
  const auto size = static_cast<std::int32_t>(read(model).vocab_size());
  const Json listed = {{std::to_string(size), {{"content", "<|im_end|>"}, {"special", true}}}};
  const auto tokenizer = read(model, {{"added_tokens_decoder", listed}, {"eos_token", "<|im_end|>"}},
                              {{"<|im_end|>", size}, {"<tool>", size + 1}});
  EXPECT_EQ(tokenizer.token_to_id("<|im_end|>"), size);
  EXPECT_EQ(tokenizer.encode("<tool>", false), std::vector<std::int32_t>{size + 1});
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{size}), "");
}

TEST_F(SentencePiece, TravelsWithTheTokenizerJsonThatIsMadeOfIt) {
  const auto tokenizer = read(model_of("gemma"));
  const test::TemporaryDirectory to;
  io::copy_files(io::accompanying_files(directory_.path()), to.path());
  EXPECT_EQ(base::read_file(to / "tokenizer.model"), model_of("gemma"));
  const auto copy = Tokenizer::from_file(to / "tokenizer.json");
  EXPECT_EQ(copy.encode("a  b\n\n <start>x"), tokenizer.encode("a  b\n\n <start>x"));
}

TEST_F(SentencePiece, RefusesOtherKindsAndOtherTexts) {
  EXPECT_SAYS(refusal(model_of("unigram")), "is of kind unigram, expected bpe");
  EXPECT_SAYS(refusal(model_of("nfkc")), "normalization \"nfkc\"");
  EXPECT_SAYS(refusal(model_of("single-spaces")), "spaces made single");
}

TEST_F(SentencePiece, RefusesTokensThatContradict) {
  const std::string model = model_of("llama");
  EXPECT_SAYS(refusal(model, {{"added_tokens_decoder", {{"1", {{"content", "<b>"}}}}}}), "id 1 is \"<b>\"");
  EXPECT_SAYS(refusal(model, Json::object(), {{"<s>", 5000}}), "\"<s>\" has two ids");
  EXPECT_SAYS(refusal(model, Json::object(), {{"<x>", -1}}), "the id of \"<x>\"");
  EXPECT_SAYS(refusal(model, Json::object(), {{"<x>", 5000}}), "\"<x>\" has the id 5000, but");
  EXPECT_SAYS(refusal(model, {{"add_bos_token", "yes"}}, Json::object()), "expected true or false");
  EXPECT_SAYS(refusal(model, {{"added_tokens_decoder", {{"x", {{"content", "<b>"}}}}}}, Json::object()),
              "no content for id \"x\"");
  EXPECT_SAYS(refusal(model, {{"added_tokens_decoder", {{"1", {{"content", "<s>"}, {"special", "yes"}}}}}},
                      Json::object()),
              "special is");
}

TEST_F(SentencePiece, NeverBelievesADamagedFile) {
  const std::string model = model_of("no-bytes");
  std::size_t refused = 0;
  for (std::size_t size = 0; size < model.size(); size += 1 + size / 50) {
    const std::string cut = model.substr(0, size);
    try {
      (void)read(cut);
    } catch (const ModelError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
  EXPECT_SAYS(refusal(""), "found an empty file");
  EXPECT_SAYS(refusal("{\"version\": 1}"), "is not a SentencePiece model");
  std::string flipped = model;
  for (std::size_t at = 0; at < flipped.size(); at += 97) {
    flipped[at] = static_cast<char>(flipped[at] ^ 0x5A);
    try {
      (void)read(flipped);
    } catch (const ModelError&) {
      // A sentence is all that a damaged file may give.
    }
    flipped[at] = model[at];
  }
}

}  // namespace
}  // namespace retort::text
