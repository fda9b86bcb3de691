#include "retort/text/tokenizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "oracle_cases.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "support/outside_data.h"

namespace retort::text {
namespace {

using test::expect_cases;
using Ids = std::vector<std::int32_t>;

Ids as_ids(const std::string& bytes) {
  Ids ids(bytes.size() / sizeof(std::int32_t));
  std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(std::int32_t));
  return ids;
}

Tokenizer europa() {
  return Tokenizer::from_file(test::source() / "models" / "europa-5m");
}

TEST(Tokenizer, GivesTheIdsAndTextsOfHfTokenizersForEveryKindAndNastyString) {
  const auto folders = test::folders_in(test::oracles("text") / "made");
  EXPECT_GE(folders.size(), 30u);
  for (const auto& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    expect_cases(Tokenizer::from_file(folder), folder / "cases.jsonl", 600);
  }
}

TEST(Tokenizer, GivesTheSameOnNastyStringsForTheTokenizersOfTheSharedData) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  const auto folders = test::folders_in(test::oracles("text") / "parity");
  EXPECT_GE(folders.size(), 9u);
  for (const auto& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    expect_cases(Tokenizer::from_file(shared / base::read_file(folder / "source.txt")),
                 folder / "cases.jsonl", 400);
  }
}

TEST(Tokenizer, GivesTheSameOnTheSharedTexts) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  const auto oracles = test::oracles("text");
  for (const auto& folder : test::folders_in(oracles / "parity")) {
    const auto tokenizer = Tokenizer::from_file(shared / base::read_file(folder / "source.txt"));
    for (const char* group : {"udhr", "tinystories", "manuals"}) {
      SCOPED_TRACE(folder.filename().string() + " " + group);
      const auto documents = test::read_rows(oracles / "documents" / (std::string(group) + ".bin"));
      const auto rows = test::read_rows(folder / (std::string(group) + ".bin"));
      ASSERT_EQ(rows.size(), 2 * documents.size());
      for (std::size_t i = 0; i < documents.size(); ++i) {
        const Ids ids = as_ids(rows[2 * i]);
        ASSERT_TRUE(tokenizer.encode(documents[i]) == ids) << "document " << i;
        ASSERT_TRUE(tokenizer.decode(ids) == rows[2 * i + 1]) << "document " << i;
      }
    }
  }
}

TEST(Tokenizer, ReadsADirectoryOrAFile) {
  const auto folder = test::source() / "models" / "europa-5m";
  EXPECT_EQ(Tokenizer::from_file(folder).encode("abc"),
            Tokenizer::from_file(folder / "tokenizer.json").encode("abc"));
  EXPECT_THROW(Tokenizer::from_file(folder / "absent.json"), base::StorageError);
}

TEST(Tokenizer, NamesItsTokens) {
  const Tokenizer tokenizer = europa();
  EXPECT_EQ(tokenizer.vocab_size(), 4096);
  EXPECT_EQ(tokenizer.token_to_id("<|endoftext|>"), 0);
  EXPECT_EQ(tokenizer.id_to_token(0), "<|endoftext|>");
  EXPECT_FALSE(tokenizer.token_to_id("no such token").has_value());
  EXPECT_TRUE(tokenizer.special_prefix().empty());
}

TEST(Tokenizer, TellsWhatThePostProcessorAdds) {
  const auto made = test::oracles("text") / "made";
  const auto both = Tokenizer::from_file(made / "template-both-sides");
  EXPECT_EQ(both.special_prefix(), Ids{0});
  EXPECT_EQ(both.special_suffix(), Ids{0});
  const auto spm = Tokenizer::from_file(made / "spm-fallback");
  EXPECT_EQ(spm.special_prefix(), Ids{1});
  EXPECT_TRUE(spm.special_suffix().empty());
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const Tokenizer tokenizer = europa();
  for (const std::int32_t id : {-1, 4096, 2147483647}) {
    EXPECT_THROW(tokenizer.decode(Ids{5, id}), base::DataError);
    EXPECT_THROW(tokenizer.id_to_token(id), base::DataError);
  }
}

TEST(Tokenizer, EncodesTheSameFromManyThreads) {
  const auto tokenizer = Tokenizer::from_file(test::oracles("text") / "made" / "llama3");
  const auto cases = test::read_cases(test::oracles("text") / "made" / "llama3" / "cases.jsonl");
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (auto& count : wrong)
    threads.emplace_back([&cases, &count, tokenizer] {
      for (const auto& one : cases)
        if (one.text && tokenizer.encode(*one.text) != one.ids) ++count;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace retort::text
