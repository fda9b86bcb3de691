// Tokenizers of a few kilobytes that would take all memory, or far more work than their text.  No time is
// measured: what comes out is bounded, and the rest is refused.
#include "retort/text/limits.h"

#include <gtest/gtest.h>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/text/run_pattern.h"
#include "retort/text/tokenizer.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;

Json replace(const std::string& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

Json repeated(const Json& step, std::size_t times) {
  Json steps = Json::array();
  for (std::size_t i = 0; i < times; ++i) steps.push_back(step);
  return steps;
}

class TextLimits : public ::testing::Test {
 protected:
  TextLimits() {
    json_ = {{"added_tokens", Json::array()},
             {"normalizer", nullptr},
             {"pre_tokenizer", nullptr},
             {"decoder", {{"type", "Fuse"}}},
             {"model",
              {{"type", "BPE"},
               {"unk_token", "<unk>"},
               {"fuse_unk", true},
               {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"<unk>", 3}}},
               {"merges", Json::array()}}}};
  }
  Tokenizer read() const {
    base::write_file_atomically(directory_ / "tokenizer.json", json_.dump());
    return Tokenizer::from_file(directory_.path());
  }
  std::string refusal_to_read() const {
    return test::message_of<base::ModelError>([&] { read(); });
  }
  std::string refusal_to_encode(const std::string& text) const {
    const Tokenizer tokenizer = read();
    return test::message_of<base::ModelError>([&] { tokenizer.encode(text); });
  }
  void normalize_by(const Json& steps) {
    json_["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  }

  Json json_;
  test::TemporaryDirectory directory_;
};

TEST_F(TextLimits, NormalizersThatDoubleATextAreRefused) {
  normalize_by(repeated(replace("a", "aa"), 16));
  const auto said = refusal_to_encode("a");
  EXPECT_SAYS(said, "tokenizer.json: normalizer: makes more than 288 bytes of a text of 1");
  normalize_by(Json::array({replace("a", std::string(300, 'b'))}));
  EXPECT_SAYS(refusal_to_encode("a"), "makes more than");
  normalize_by(repeated({{"type", "Prepend"}, {"prepend", std::string(100, 'b')}}, 3));
  EXPECT_SAYS(refusal_to_encode("a"), "makes more than");
}

TEST_F(TextLimits, ReadingStopsWhereAnAddedTokenGrows) {
  normalize_by(repeated(replace("a", "aa"), 16));
  json_["added_tokens"] = Json::array({{{"id", 0}, {"content", "a"}, {"normalized", true}}});
  EXPECT_SAYS(refusal_to_read(), "normalizer: makes more than");
}

TEST_F(TextLimits, ATabMayBecomeEightMarks) {
  normalize_by(Json::array({replace("\t", std::string(8, ' ')), replace(" ", "\u2581")}));
  json_["model"]["vocab"]["\u2581"] = 4;
  EXPECT_EQ(read().encode(std::string(100'000, '\t')).size(), 800'000U);
}

TEST_F(TextLimits, DecodersThatDoubleATextAreRefused) {
  json_["decoder"] = {{"type", "Sequence"}, {"decoders", repeated(replace("a", "aa"), 16)}};
  const Tokenizer tokenizer = read();
  const std::vector<std::int32_t> ids{0};
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { tokenizer.decode(ids); }),
              "tokenizer.json: decoder: makes more than 288 bytes of a text of 1");
  json_["decoder"] = replace("a", std::string(3000, 'b'));
  const std::vector<std::int32_t> many(1000, 0);
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { read().decode(many); }),
              "makes more than 32256 bytes");
}

TEST_F(TextLimits, RowsOfStepsAreShort) {
  const Json split = {{"type", "Split"}, {"pattern", {{"String", "b"}}}, {"behavior", "Isolated"}};
  const Json same = replace("a", "a");
  const auto with = [](const char* key, const Json& steps) {
    return Json{{"type", "Sequence"}, {key, steps}};
  };
  json_["normalizer"] = with("normalizers", repeated(same, kMaxSteps));
  json_["pre_tokenizer"] = with("pretokenizers", repeated(split, kMaxSteps));
  json_["decoder"] = with("decoders", repeated(same, kMaxSteps));
  EXPECT_EQ(read().encode("aba").size(), 3U);

  for (const Json& steps :
       {repeated(same, kMaxSteps + 1), repeated(with("normalizers", repeated(same, 40)), 2)}) {
    json_["normalizer"] = with("normalizers", steps);
    EXPECT_SAYS(refusal_to_read(), "normalizer");
  }
  json_["normalizer"] = nullptr;
  // Each calls the next one: a row of them would use up the stack.
  json_["pre_tokenizer"] = with("pretokenizers", repeated(split, 20'000));
  EXPECT_SAYS(refusal_to_read(), "found 20000 entries, expected at most 64");
  json_["pre_tokenizer"] = nullptr;
  json_["decoder"] = with("decoders", repeated(same, kMaxSteps + 1));
  EXPECT_SAYS(refusal_to_read(), "decoder");
}

TEST_F(TextLimits, PiecesDoNotDouble) {
  const auto mark = [](const char* character) {
    return Json{{"type", "Metaspace"}, {"replacement", character}};
  };
  json_["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json::array({mark("_"), mark("-")})}};
  EXPECT_SAYS(refusal_to_read(), "pretokenizers[1]: found a second Metaspace");
}

TEST_F(TextLimits, FewTokensStandAroundAText) {
  const auto with = [&](std::size_t pieces, std::size_t ids) {
    Json single = repeated({{"SpecialToken", {{"id", "b"}, {"type_id", 0}}}}, pieces);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    json_["post_processor"] = {{"type", "TemplateProcessing"},
                               {"single", single},
                               {"special_tokens", {{"b", {{"id", "b"}, {"ids", repeated(1, ids)}}}}}};
  };
  with(4, 64);
  EXPECT_EQ(read().encode("a").size(), 257U);
  with(5, 64);
  EXPECT_SAYS(refusal_to_read(), "puts more than 256 tokens around a text");
  with(1, 257);
  EXPECT_SAYS(refusal_to_read(), "found 257 entries, expected at most 256");
  with(256, 0);
  EXPECT_SAYS(refusal_to_read(), "found 257 entries, expected at most 256");
  with(3, 64);
  const Json once = json_["post_processor"];
  json_["post_processor"] = {{"type", "Sequence"}, {"processors", Json::array({once, once})}};
  EXPECT_SAYS(refusal_to_read(), "puts more than 256 tokens around a text");
}

TEST_F(TextLimits, AddedTokensAndLiteralsAreShort) {
  Json tokens = Json::array();
  for (int i = 0; i < 5000; ++i)
    tokens.push_back({{"id", 4 + i}, {"content", std::string(1000, 'x') + std::to_string(i)}});
  json_["added_tokens"] = tokens;
  EXPECT_SAYS(refusal_to_read(), "of each and 4194304 of all");
  normalize_by(Json::array({replace("x", "xx")}));
  json_["added_tokens"] =
      Json::array({{{"id", 4}, {"content", std::string(600, 'x')}, {"normalized", true}}});
  EXPECT_SAYS(refusal_to_read(), "have 1200 bytes, expected at most 1024 of each");
  json_["added_tokens"] = Json::array();
  normalize_by(Json::array({replace(std::string(1025, 'x'), "x")}));
  EXPECT_SAYS(refusal_to_read(), "expected a text of at most 1024 bytes to look for, found one of 1025");
}

TEST(RunPatternLimits, RangesOfAnyOrderAndOverlapAreOneSet) {
  const auto pattern = RunPattern::parse("[x-za-cm\u00e9b-dq-z]+");
  ASSERT_TRUE(pattern.has_value());
  const auto matched = [&](std::string_view text) {
    return static_cast<std::size_t>(pattern->match(text.data(), text.data() + text.size()) - text.data());
  };
  const std::string_view all = "abcdmqrstuvwxyz\u00e9";
  EXPECT_EQ(matched(all), all.size());
  for (const std::string_view other : {"`", "e", "l", "n", "p", "{", "\u00e8", "\u00ea"})
    EXPECT_EQ(matched(other), 0U) << other;
}

TEST_F(TextLimits, ASmallVocabularyHasSmallIds) {
  json_["model"]["vocab"]["c"] = 60'000;
  EXPECT_EQ(read().vocab_size(), 60'001);
  json_["model"]["vocab"]["c"] = (1 << 22) - 1;
  EXPECT_SAYS(refusal_to_read(), "expected a whole number up to 65616");
}

}  // namespace
}  // namespace retort::text
