// Hostile and unsupported tokenizer.json: each is refused with a ModelError that names the file and the
// place.

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/random.h"
#include "retort/text/tokenizer.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;

constexpr const char* kSound = R"json({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [{"id": 0, "content": "<s>", "special": true, "normalized": false}],
  "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}]},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 1, "stop": 0},
                                               {"type": "ByteLevel"}]},
  "model": {"type": "BPE", "dropout": null, "unk_token": "<s>", "continuing_subword_prefix": "",
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]}
})json";

// What is read from `content`: the error's message, or an empty string when it is accepted.
std::string refusal_of(const std::string& content) {
  const test::TemporaryDirectory directory;
  base::write_file_atomically(directory / "tokenizer.json", content);
  try {
    Tokenizer::from_file(directory.path()).encode("ab <s>ab");
    return "";
  } catch (const base::ModelError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("tokenizer.json"), message.npos) << message;
    EXPECT_EQ(message.back(), '.') << message;
    return message;
  }
}

std::string refusal_of(const char* pointer, const Json& value) {
  Json document = Json::parse(kSound);
  document[Json::json_pointer(pointer)] = value;
  return refusal_of(document.dump());
}

void expect_mentions(const std::string& message, std::initializer_list<const char*> words) {
  ASSERT_FALSE(message.empty()) << "accepted";
  for (const char* word : words) EXPECT_NE(message.find(word), message.npos) << message;
}

TEST(HostileTokenizer, TheUnchangedFileIsAccepted) {
  EXPECT_EQ(refusal_of(kSound), "");
}

TEST(HostileTokenizer, RefusesWhatIsNotJson) {
  expect_mentions(refusal_of(""), {"an empty file"});
  expect_mentions(refusal_of("{"), {"not valid JSON"});
  expect_mentions(refusal_of("\xFF\xFE"), {"text in UTF-16"});
  expect_mentions(refusal_of(std::string(1000, '[')), {"not valid JSON", "deep"});
  expect_mentions(refusal_of(R"({"model": {}, "model": {}})"), {"not valid JSON", "twice"});
  expect_mentions(refusal_of("[]"), {"model"});
  expect_mentions(refusal_of("{}"), {"model", "missing"});
  expect_mentions(refusal_of("null"), {"model"});
}

TEST(HostileTokenizer, RefusesKindsThatItDoesNotKnowByName) {
  expect_mentions(refusal_of("/model/type", "Unigram"), {"model.type", "Unigram"});
  expect_mentions(refusal_of("/normalizer/type", "Lowercase"), {"normalizer", "Lowercase"});
  expect_mentions(refusal_of("/normalizer/normalizers/0/type", "NFKC"),
                  {"normalizer.normalizers[0]", "NFKC"});
  expect_mentions(refusal_of("/pre_tokenizer/pretokenizers/0/type", "Whitespace"), {"Whitespace"});
  expect_mentions(refusal_of("/post_processor/type", "BertProcessing"), {"post_processor", "BertProcessing"});
  expect_mentions(refusal_of("/decoder/decoders/0/type", "CTC"), {"decoder.decoders[0]", "CTC"});
}

TEST(HostileTokenizer, NeverRunsAnExpressionOfTheFile) {
  for (const char* regex : {"(a+)+$", R"(\s+)", "(", ""}) {
    const Json pattern = {{"Regex", regex}};
    expect_mentions(refusal_of("/pre_tokenizer/pretokenizers/0/pattern", pattern), {"regular expression"});
    const Json replace = {{"type", "Replace"}, {"pattern", pattern}, {"content", "x"}};
    expect_mentions(refusal_of("/normalizer", replace), {"regular expression"});
    expect_mentions(refusal_of("/decoder", replace), {"regular expression"});
  }
}

TEST(HostileTokenizer, RefusesStepsThatMakeNoSense) {
  const char* split = "/pre_tokenizer/pretokenizers/0/";
  expect_mentions(refusal_of((std::string(split) + "behavior").c_str(), "Sideways"), {"Sideways"});
  expect_mentions(refusal_of((std::string(split) + "invert").c_str(), true), {"inverted"});
  expect_mentions(refusal_of((std::string(split) + "invert").c_str(), "yes"), {"invert", "true or false"});
  expect_mentions(refusal_of((std::string(split) + "pattern").c_str(), {{"String", ""}}), {"empty"});
  expect_mentions(refusal_of("/pre_tokenizer/pretokenizers/2", {{"type", "Digits"}}), {"ByteLevel"});
  expect_mentions(refusal_of("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}),
                  {"one character"});
  expect_mentions(refusal_of("/decoder/decoders/0/content", ""), {"one character"});
  expect_mentions(refusal_of("/decoder/decoders/0/start", -1), {"whole number"});
  expect_mentions(refusal_of("/decoder", "ByteLevel"), {"decoder", "object"});
  expect_mentions(refusal_of("/normalizer/normalizers", 7), {"normalizers", "list"});
}

TEST(HostileTokenizer, RefusesVocabulariesOutOfRange) {
  expect_mentions(refusal_of("/model/vocab", Json::object()), {"0 tokens"});
  expect_mentions(refusal_of("/model/vocab", Json::array()), {"model.vocab"});
  for (const Json& id : {Json(-1), Json(1.5), Json("1"), Json(nullptr), Json(1u << 22), Json(1ull << 63)})
    expect_mentions(refusal_of("/model/vocab/a", id), {"model.vocab", "\"a\"", "id"});
  expect_mentions(refusal_of("/model/vocab/b", 1), {"same id 1", "\"a\"", "\"b\""});
  expect_mentions(refusal_of("/model/vocab", {{std::string(70000, 'x'), 0}}), {"bytes"});
}

TEST(HostileTokenizer, RefusesMergesOfUnknownTokens) {
  const auto merges = [](std::initializer_list<const char*> tokens) {
    Json list = Json::array();
    list.push_back(std::vector<std::string>(tokens.begin(), tokens.end()));
    return list;
  };
  expect_mentions(refusal_of("/model/merges", merges({"a", "zz"})), {"model.merges", "entry 0", "\"zz\""});
  expect_mentions(refusal_of("/model/merges", merges({"b", "a"})), {"\"ba\""});
  expect_mentions(refusal_of("/model/merges", Json::array({"a b", "a"})), {"entry 1"});
  expect_mentions(refusal_of("/model/merges", Json::array({"a b b"})), {"entry 0"});
  expect_mentions(refusal_of("/model/merges", merges({"a", "b", "b"})), {"pair"});
  expect_mentions(refusal_of("/model/merges", Json::array({7})), {"pair"});
  expect_mentions(refusal_of("/model/merges", "a b"), {"list"});
}

TEST(HostileTokenizer, RefusesModelOptionsThatChangeIdsUnseen) {
  expect_mentions(refusal_of("/model/dropout", 0.1), {"dropout"});
  expect_mentions(refusal_of("/model/dropout", "0"), {"dropout"});
  expect_mentions(refusal_of("/model/unk_token", "<unk>"), {"unk_token", "<unk>"});
  expect_mentions(refusal_of("/model/continuing_subword_prefix", "##"), {"##"});
  expect_mentions(refusal_of("/model/end_of_word_suffix", "</w>"), {"</w>"});
  expect_mentions(refusal_of("/model/byte_fallback", 1), {"byte_fallback"});
}

TEST(HostileTokenizer, RefusesAddedTokensThatContradictTheVocabulary) {
  const auto token = [](const Json& id, const std::string& content) {
    return Json::array({{{"id", id}, {"content", content}}});
  };
  expect_mentions(refusal_of("/added_tokens", token(1, "<s>")), {"added_tokens[0]", "<s>"});
  expect_mentions(refusal_of("/added_tokens", token(3, "new")), {"\"new\"", "4"});
  expect_mentions(refusal_of("/added_tokens", token(4, "")), {"content"});
  expect_mentions(refusal_of("/added_tokens", token(4, std::string(2000, 'x'))), {"content"});
  expect_mentions(refusal_of("/added_tokens", token(-4, "new")), {"id"});
  expect_mentions(refusal_of("/added_tokens", token(1u << 22, "new")), {"id"});
  expect_mentions(refusal_of("/added_tokens", {{"id", 4}}), {"list"});
  Json twice = token(4, "new");
  twice.push_back({{"id", 5}, {"content", "new"}});
  expect_mentions(refusal_of("/added_tokens", twice), {"twice"});
}

TEST(HostileTokenizer, RefusesTemplatesThatAreNotOneSequence) {
  const Json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json second = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
  expect_mentions(refusal_of("/post_processor/single", Json::array()), {"once"});
  expect_mentions(refusal_of("/post_processor/single", Json::array({sequence, sequence})), {"once"});
  expect_mentions(refusal_of("/post_processor/single", Json::array({second})), {"\"A\""});
  expect_mentions(refusal_of("/post_processor/special_tokens", Json::object()), {"<s>", "missing"});
  expect_mentions(refusal_of("/post_processor/special_tokens/<s>/ids", Json::array({99})), {"99"});
}

TEST(HostileTokenizer, RefusesAFileThatIsTooLarge) {
  const test::TemporaryDirectory directory;
  base::write_file_atomically(directory / "tokenizer.json", "{}");
  std::filesystem::resize_file(directory / "tokenizer.json", std::uintmax_t{1} << 30);  // sparse
  EXPECT_THROW(Tokenizer::from_file(directory.path()), base::ModelError);
}

TEST(HostileTokenizer, DamagedFilesAreAcceptedOrRefusedButNeverCrash) {
  const std::string sound = kSound;
  base::Random random(23, 0);
  const test::TemporaryDirectory directory;
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string damaged = sound;
    for (std::uint64_t edits = 1 + random.next_below(3); edits > 0; --edits) {
      const std::size_t at = random.next_below(damaged.size());
      switch (random.next_below(3)) {
        case 0:
          damaged[at] = static_cast<char>(32 + random.next_below(96));
          break;
        case 1:
          damaged.erase(at, 1 + random.next_below(8));
          break;
        default:
          damaged.insert(at, damaged.substr(random.next_below(damaged.size()), random.next_below(20)));
      }
    }
    base::write_file_atomically(directory / "tokenizer.json", damaged);
    try {
      const auto tokenizer = Tokenizer::from_file(directory.path());
      tokenizer.decode(tokenizer.encode("ab <s> ab\xFF"));
    } catch (const base::ModelError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace retort::text
