// Tokenizers of Hugging Face, written as the metadata of GGUF files: ids and texts must be what they were.
#include <gtest/gtest.h>

#include <optional>
#include <unordered_map>

#include "oracle_cases.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/text/tokenizer.h"
#include "support/gguf_writer.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;
using test::GgufWriter;

// As convert_hf_to_gguf.py numbers them.
enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6 };

struct Tokens {
  std::vector<std::string> names;
  std::vector<std::int32_t> kinds;
};

Tokens tokens_of(const Json& tokenizer) {
  Tokens tokens;
  const auto place = [&](std::size_t id, const std::string& name, std::int32_t kind) {
    if (id >= tokens.names.size()) {
      tokens.names.resize(id + 1);
      tokens.kinds.resize(id + 1, kNormal);
    }
    tokens.names[id] = name;
    tokens.kinds[id] = kind;
  };
  const Json& model = tokenizer.at("model");
  const bool bytes = model.value("byte_fallback", false);
  for (const auto& [name, id] : model.at("vocab").items())
    place(id, name, bytes && name.size() == 6 && name.starts_with("<0x") ? kByte : kNormal);
  for (const Json& added : tokenizer.at("added_tokens"))
    place(added.at("id"), added.at("content"), added.at("special") ? kControl : kUserDefined);
  return tokens;
}

std::vector<std::string> merges_of(const Json& model) {
  std::vector<std::string> merges;
  for (const Json& merge : model.at("merges")) {
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return merges;
}

// The id that the template puts in front of a text.
std::optional<std::uint32_t> bos_of(const Json& processor) {
  if (processor.is_null()) return std::nullopt;
  if (processor.at("type") == "Sequence") {
    for (const Json& step : processor.at("processors"))
      if (const auto bos = bos_of(step)) return bos;
    return std::nullopt;
  }
  if (processor.at("type") != "TemplateProcessing" || !processor.at("single")[0].contains("SpecialToken"))
    return std::nullopt;
  const std::string name = processor.at("single")[0].at("SpecialToken").at("id");
  return processor.at("special_tokens").at(name).at("ids")[0].get<std::uint32_t>();
}

// Scores fall in the order of the merges; SentencePiece gives all runs of spaces the same, below all others.
std::vector<float> scores_of(const Json& tokenizer, const Tokens& tokens) {
  constexpr float kLowest = -1e9F;
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < tokens.names.size(); ++id) ids[tokens.names[id]] = id;
  std::vector<float> scores(tokens.names.size(), kLowest);
  float rank = 0;
  for (std::string merge : merges_of(tokenizer.at("model"))) {
    merge.erase(merge.find(' '), 1);
    float& score = scores[ids.at(merge)];
    const bool spaces = merge.find_first_not_of("\u2581") == merge.npos;
    if (!spaces && score == kLowest) score = -rank;
    ++rank;
  }
  return scores;
}

// `pre` names the cut of a byte-level tokenizer; it is empty for SentencePiece.
std::string gguf_of(const base::Path& file, const std::string& pre) {
  const Json tokenizer = base::parse_json(base::read_file(file), {.max_bytes = std::size_t{1} << 28});
  Tokens tokens = tokens_of(tokenizer);
  GgufWriter gguf = test::tiny_gguf_metadata();
  gguf.tensor("token_embd.weight", {4, 1}, 0, std::string(16, '\0'));
  gguf.text("tokenizer.ggml.model", pre.empty() ? "llama" : "gpt2");
  if (pre.empty()) {
    gguf.reals("tokenizer.ggml.scores", scores_of(tokenizer, tokens));
    tokens.kinds[0] = kUnknown;
  } else {
    gguf.text("tokenizer.ggml.pre", pre);
    gguf.texts("tokenizer.ggml.merges", merges_of(tokenizer.at("model")));
  }
  gguf.texts("tokenizer.ggml.tokens", tokens.names);
  gguf.integers("tokenizer.ggml.token_type", tokens.kinds);
  const auto bos = bos_of(tokenizer.at("post_processor"));
  gguf.flag("tokenizer.ggml.add_bos_token", bos.has_value());
  if (bos) gguf.number("tokenizer.ggml.bos_token_id", *bos);
  return gguf.bytes();
}

Tokenizer through_gguf(const base::Path& file, const std::string& pre) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "model.gguf";
  base::write_file_atomically(path, gguf_of(file, pre));
  return Tokenizer::from_file(path);
}

struct Named {
  std::string folder, pre;
};

TEST(GgufTokenizer, GivesTheIdsOfTheOriginalForEveryKindThatItKnows) {
  const auto made = test::oracles("text") / "made";
  for (const auto& [folder, pre] :
       {Named{"gpt2", "gpt-2"}, Named{"digits", "smollm"}, Named{"digits", "starcoder"},
        Named{"cl100k", "dbrx"}, Named{"llama3", "llama-bpe"}, Named{"qwen2-nfc", "qwen2"},
        Named{"o200k-plain", "gpt-4o"}, Named{"tekken", "tekken"}, Named{"deepseek-llm", "deepseek-llm"},
        Named{"deepseek-coder", "deepseek-coder"}, Named{"spm-fallback", ""}, Named{"spm-some-bytes", ""}}) {
    SCOPED_TRACE(folder + " as " + pre);
    test::expect_cases(through_gguf(made / folder / "tokenizer.json", pre), made / folder / "cases.jsonl",
                       600);
  }
}

TEST(GgufTokenizer, GivesTheIdsOfTheOriginalForTokenizersOfRealModels) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  const auto parity = test::oracles("text") / "parity";
  for (const auto& [folder, pre] :
       {Named{"gpt2_tokenizer", "gpt-2"}, Named{"smollm2", "smollm"}, Named{"dolma2_100k_tokenizer", "dbrx"},
        Named{"gpt-neox-olmo_tokenizer", "olmo"}, Named{"tekken", "tekken"}, Named{"europa-5m", "smaug-bpe"},
        Named{"stories260K", ""}, Named{"babyllama-tok105", ""}, Named{"mistral7b", ""}}) {
    SCOPED_TRACE(folder + " as " + pre);
    test::expect_cases(through_gguf(shared / base::read_file(parity / folder / "source.txt"), pre),
                       parity / folder / "cases.jsonl", 400);
  }
}

TEST(GgufTokenizer, OfAFileThatPeopleUseGivesTheIdsOfTheOriginal) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  RETORT_GGUF_OR_SKIP(file);
  const auto text = test::oracles("text"), parity = text / "parity" / "smollm2";
  const auto tokenizer = Tokenizer::from_file(file);
  test::expect_cases(tokenizer, parity / "cases.jsonl", 400);
  const auto original = Tokenizer::from_file(shared / base::read_file(parity / "source.txt"));
  for (const char* group : {"udhr", "tinystories", "manuals"})
    for (const auto& document : test::read_rows(text / "documents" / (std::string(group) + ".bin")))
      ASSERT_TRUE(tokenizer.encode(document) == original.encode(document))
          << group << ": " << document.substr(0, 200);
}

TEST(GgufTokenizer, LeavesOutTheTokensThatFillAVocabulary) {
  GgufWriter gguf = test::tiny_gguf_metadata();
  gguf.tensor("token_embd.weight", {4, 4}, 0, std::string(64, '\0'));
  gguf.text("tokenizer.ggml.model", "gpt2");
  gguf.text("tokenizer.ggml.pre", "gpt-2");
  gguf.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "[PAD3]"});
  gguf.integers("tokenizer.ggml.token_type", {1, 1, 1, 5});
  gguf.texts("tokenizer.ggml.merges", {"a b"});
  const test::TemporaryDirectory directory;
  base::write_file_atomically(directory / "model.gguf", gguf.bytes());
  const auto tokenizer = Tokenizer::from_file(directory / "model.gguf");
  EXPECT_EQ(tokenizer.vocab_size(), 3);
  EXPECT_EQ(tokenizer.encode("abb"), (std::vector<std::int32_t>{2, 1}));
}

TEST(GgufTokenizer, PutsBeginOfTextWhereLlamaCppDoesUnlessTheFileSaysOtherwise) {
  GgufWriter gguf = test::tiny_gguf_metadata();
  gguf.tensor("token_embd.weight", {4, 4}, 0, std::string(64, '\0'));
  gguf.text("tokenizer.ggml.model", "llama");
  gguf.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "\u2581", "a"});
  gguf.reals("tokenizer.ggml.scores", {0, 0, 0, -1, -2});
  gguf.integers("tokenizer.ggml.token_type", {2, 3, 3, 1, 1});
  const test::TemporaryDirectory directory;
  base::write_file_atomically(directory / "model.gguf", gguf.bytes());
  EXPECT_EQ(Tokenizer::from_file(directory / "model.gguf").encode("a"), (std::vector<std::int32_t>{1, 3, 4}));
  gguf.flag("tokenizer.ggml.add_space_prefix", false);
  gguf.flag("tokenizer.ggml.add_bos_token", false);
  gguf.flag("tokenizer.ggml.add_eos_token", true);
  base::write_file_atomically(directory / "model.gguf", gguf.bytes());
  EXPECT_EQ(Tokenizer::from_file(directory / "model.gguf").encode("a"), (std::vector<std::int32_t>{4, 2}));
}

}  // namespace
}  // namespace retort::text
