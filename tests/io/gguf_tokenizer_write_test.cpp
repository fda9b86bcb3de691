// A tokenizer.json written as metadata and read again says what it said.
#include "retort/io/gguf_tokenizer_write.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/io/gguf.h"
#include "retort/io/gguf_pre_tokenizers.h"
#include "retort/io/gguf_tokenizer.h"
#include "retort/io/tokenizer_json.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using base::Json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 27;

Json parsed(const std::string& text) {
  return base::parse_json(text, {.max_bytes = kMaxBytes});
}

io::GgufEntries entries_of(const Json& tokenizer, std::int64_t rows, const io::GgufSpecialIds& ids = {}) {
  return io::gguf_tokenizer_entries(tokenizer, rows, ids, "tokenizer.json");
}

// What a reader makes of the entries, by way of a file.
Json read_back(const io::GgufEntries& entries) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "a.gguf";
  io::write_gguf(path, entries, {});
  const auto file = io::GgufFile::open(path);
  const std::string where = "a.gguf";
  return parsed(io::gguf_tokenizer_json({file.metadata(), where}));
}

const io::GgufValue& value_of(const io::GgufEntries& entries, const std::string& key) {
  for (const auto& [own, value] : entries)
    if (own == key) return value;
  throw std::out_of_range(key);
}

std::string said(const io::GgufEntries& entries, const std::string& key) {
  return std::get<std::string>(value_of(entries, key));
}

// Three letters and what two of them make.
Json small() {
  const io::Vocabulary vocabulary{
      .tokens = {"<s>", "a", "b", "ab", "c"}, .kinds = std::vector(5, io::TokenKind::normal), .scores = {}};
  const io::AddedToken bos{.id = 0, .content = "<s>", .special = true};
  return parsed(io::tokenizer_json({.vocabulary = vocabulary,
                                    .merges = {{"a", "b"}},
                                    .pipeline = io::byte_level_pipeline({}, io::SingleDigits::no, false),
                                    .added = {bos},
                                    .around = {.bos = bos, .eos = {}}},
                                   "tokenizer.json"));
}

// The same of pieces, whose merges follow from scores.
Json small_pieces(bool prefix) {
  const io::Vocabulary vocabulary{.tokens = {"<unk>", "<s>", "<0x41>", "a", "b", "\u2581", "ab", "\u2581ab"},
                                  .kinds = std::vector(8, io::TokenKind::normal),
                                  .scores = {}};
  return parsed(io::tokenizer_json({.vocabulary = vocabulary,
                                    .merges = {{"a", "b"}, {"\u2581", "ab"}},
                                    .pipeline = io::sentencepiece_pipeline(prefix, true),
                                    .added = {{.id = 0, .content = "<unk>", .special = true},
                                              {.id = 1, .content = "<s>", .special = true}},
                                    .around = {},
                                    .unk = "<unk>",
                                    .byte_fallback = true},
                                   "tokenizer.json"));
}

void expect_same(const Json& read, const Json& tokenizer) {
  for (const char* key : {"vocab", "merges", "byte_fallback", "ignore_merges"})
    EXPECT_EQ(read["model"][key], tokenizer["model"][key]) << key;
}

TEST(WriteGgufTokenizer, EveryNameOfAPreTokenizerComesBack) {
  std::set<std::string> steps;
  for (const auto& known : io::pre_tokenizers()) {
    Json tokenizer = small();
    const auto pipeline = io::byte_level_pipeline(known.patterns, known.digits, known.composed);
    tokenizer["normalizer"] = pipeline.normalizer;
    tokenizer["pre_tokenizer"] = pipeline.pre_tokenizer;
    tokenizer["model"]["ignore_merges"] = known.ignore_merges;
    const auto name = said(entries_of(tokenizer, 5), "tokenizer.ggml.pre");
    const auto key =
        base::join(pipeline.normalizer.dump(), pipeline.pre_tokenizer.dump(), known.ignore_merges);
    if (steps.insert(key).second)
      EXPECT_EQ(name, known.name) << "the first of its kind";
    else
      EXPECT_NE(name, known.name) << "a name for what another says";
  }
}

TEST(WriteGgufTokenizer, BytesComeBackWithWhatStandsAround) {
  const Json tokenizer = small();
  const auto entries = entries_of(tokenizer, 7, {.bos = 4, .pad = 3, .eos = {4, 3}});
  const Json read = read_back(entries);
  expect_same(read, tokenizer);
  EXPECT_EQ(read["post_processor"]["single"], tokenizer["post_processor"]["single"]);
  EXPECT_EQ(std::get<std::uint32_t>(value_of(entries, "tokenizer.ggml.bos_token_id")), 0U)
      << "what the post-processor puts in front";
  EXPECT_EQ(std::get<std::uint32_t>(value_of(entries, "tokenizer.ggml.eot_token_id")), 3U);
  const auto& tokens = std::get<std::vector<std::string>>(value_of(entries, "tokenizer.ggml.tokens"));
  EXPECT_EQ(tokens.back(), "[PAD6]") << "a token for each row";
}

TEST(WriteGgufTokenizer, PiecesComeBackByTheirScores) {
  for (const bool prefix : {false, true}) {
    const Json tokenizer = small_pieces(prefix);
    const auto entries = entries_of(tokenizer, 8);
    EXPECT_EQ(said(entries, "tokenizer.ggml.model"), "llama");
    EXPECT_EQ(std::get<bool>(value_of(entries, "tokenizer.ggml.add_space_prefix")), prefix);
    const Json read = read_back(entries);
    expect_same(read, tokenizer);
    EXPECT_EQ(read["normalizer"], tokenizer["normalizer"]);
  }
}

// llama.cpp takes spaces behind special tokens away in a model of this name.
TEST(WriteGgufTokenizer, OfPhi3ComesBackWithTokensThatTakeSpacesAlong) {
  const auto strips = [](const std::string& name) {
    auto entries = entries_of(small_pieces(true), 8);
    entries.emplace_back("general.name", name);
    for (auto& [key, value] : entries)
      if (key == "tokenizer.ggml.tokens") std::get<std::vector<std::string>>(value)[1] = "<|user|>";
    std::map<std::string, bool> tokens;
    const Json read = read_back(entries);
    for (const Json& token : read["added_tokens"]) tokens[token["content"]] = token["rstrip"];
    return tokens;
  };
  EXPECT_EQ(strips("Phi-3 mini"), (std::map<std::string, bool>{{"<unk>", false}, {"<|user|>", true}}));
  EXPECT_EQ(strips("model"), (std::map<std::string, bool>{{"<unk>", false}, {"<|user|>", false}}));
}

TEST(WriteGgufTokenizer, RefusesWhatGgufHasNoWordsFor) {
  const auto refusal = [](Json tokenizer) {
    return test::message_of<base::ModelError>([&] { entries_of(tokenizer, 8); });
  };
  Json tokenizer = small();
  tokenizer["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "[a-z]+"}}}, {"behavior", "Isolated"}};
  EXPECT_SAYS(refusal(tokenizer), "for which GGUF has no name; write the model for transformers.");
  EXPECT_SAYS(refusal(tokenizer), "[a-z]+");
  tokenizer = small();
  tokenizer["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_SAYS(refusal(tokenizer), "Lowercase");
  tokenizer = small();
  auto& single = tokenizer["post_processor"]["single"];
  single.insert(single.begin(), single.front());
  EXPECT_SAYS(refusal(tokenizer), "puts several tokens beside a text");
  tokenizer = small_pieces(true);
  tokenizer["model"]["merges"] = Json::array({Json::array({"\u2581", "ab"})});
  EXPECT_SAYS(refusal(tokenizer), "do not follow from scores");
  tokenizer = small_pieces(true);
  tokenizer["normalizer"] = {{"type", "NFKC"}};
  EXPECT_SAYS(refusal(tokenizer), "changes text in a way");
}

TEST(WriteGgufTokenizer, OfModelsThatPeopleUseComesBack) {
  RETORT_SHARED_DATA_OR_SKIP(data);
  std::map<std::string, std::string> expected = {
      {"tokenizers/smollm2", "smollm"}, {"tokenizers/gpt2-neox-dolma2", ""}, {"models/europa-5m", "dbrx"}};
  for (const auto& [name, pre] : expected) {
    const auto file = data / name / "tokenizer.json";
    if (pre.empty() || !std::filesystem::exists(file)) continue;
    const Json tokenizer = parsed(base::read_file(file, kMaxBytes));
    const auto entries = entries_of(
        tokenizer, std::ssize(tokenizer["model"]["vocab"]) + std::ssize(tokenizer["added_tokens"]));
    EXPECT_EQ(said(entries, "tokenizer.ggml.pre"), pre);
    const Json read = read_back(entries);
    EXPECT_EQ(read["model"]["merges"].size(), tokenizer["model"]["merges"].size());
  }
}

}  // namespace
}  // namespace retort
