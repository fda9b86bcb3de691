// The file of texts that a model wrote: judged in order, gone on with, refused.
#include "retort/pipeline/corpus_file.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::pipeline {
namespace {

CorpusRow row(std::int64_t number, const std::string& text, Fate fate = Fate::kept) {
  return {.number = number, .fate = fate, .tokens = 10, .line = {{"text", text}}};
}

class Corpus : public testing::Test {
 protected:
  CorpusFile open(std::int64_t budget = 1000, const base::Json& settings = {{"seed", 1}}) const {
    return {path(), settings, "2026-01-01", budget, false};
  }
  base::Path path() const { return directory_ / "c.jsonl"; }
  std::string written() const { return base::read_file(path()); }

  test::TemporaryDirectory directory_;
};

TEST_F(Corpus, IsInTheOrderOfRowsWhateverComesFirst) {
  auto file = open();
  for (const auto number : {2, 0, 3, 1})
    file.add(row(number, std::string(1, static_cast<char>('a' + number))));
  EXPECT_EQ(written(), "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n{\"text\":\"d\"}\n");
  EXPECT_EQ(file.counts().tokens, 40);
}

TEST_F(Corpus, KeepsTheFirstOfEqualTextsAndNothingBehindItsBudget) {
  auto file = open(30);
  file.add(row(0, "a"));
  file.add(row(1, "a"));
  file.add(row(2, "b", Fate::unended));
  file.add(row(3, "b"));
  EXPECT_FALSE(file.finished());
  file.add(row(5, "d"));
  file.add(row(4, "c"));
  EXPECT_TRUE(file.finished());
  EXPECT_EQ(written(), "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n");
  EXPECT_EQ(describe_dropped(file.counts()), "1 without an end, 1 duplicates");
  EXPECT_EQ(file.counts().rows, 5);
}

// Cut anywhere, also where more is in the file than is said beside it.
TEST_F(Corpus, GoesOnFromEveryEnd) {
  const auto add_from = [](CorpusFile& file, std::int64_t first) {
    for (auto number = first; number < 12; ++number)
      file.add(
          row(number, "text " + std::to_string(number % 5), number == 7 ? Fate::repetitive : Fate::kept));
    file.save();
  };
  {
    auto whole = open();
    add_from(whole, 0);
  }
  const auto text = written(), about = base::read_file(CorpusFile::about(path()));
  for (std::int64_t rows = 0; rows < 12; ++rows)
    for (const bool torn : {false, true}) {
      std::filesystem::remove(path());
      std::filesystem::remove(CorpusFile::about(path()));
      {
        auto begun = open();
        for (std::int64_t number = 0; number < rows; ++number)
          begun.add(
              row(number, "text " + std::to_string(number % 5), number == 7 ? Fate::repetitive : Fate::kept));
        begun.save();
      }
      if (torn) base::write_file_atomically(path(), written() + "{\"text\":\"half a li");
      auto again = open();
      EXPECT_EQ(again.counts().rows, rows);
      add_from(again, rows);
      EXPECT_EQ(written(), text) << rows;
      EXPECT_EQ(base::read_file(CorpusFile::about(path())), about) << rows;
    }
}

TEST_F(Corpus, TakesAGreaterBudgetAndRefusesASmallerOne) {
  {
    auto file = open(20);
    for (int number = 0; number < 3; ++number) file.add(row(number, std::to_string(number)));
    EXPECT_EQ(file.counts().rows, 2);
  }
  EXPECT_NE(test::message_of<base::UsageError>([&] { (void)open(10); }).find("at most 10 tokens, found 20"),
            std::string::npos);
  auto more = open(30);
  EXPECT_FALSE(more.finished());
  more.add(row(2, "2"));
  EXPECT_TRUE(more.finished());
}

TEST_F(Corpus, IsWrittenByOneAtATime) {
  const auto file = open();
  EXPECT_SAYS(test::message_of<base::StorageError>([&] { (void)open(); }), "another process writes it");
}

TEST_F(Corpus, RefusesOtherSettingsOtherFilesAndChangedTexts) {
  {
    auto file = open();
    file.add(row(0, "a"));
    file.save();
  }
  EXPECT_NE(test::message_of<base::UsageError>([&] {
              (void)open(1000, {{"seed", 2}});
            }).find("found others"),
            std::string::npos);
  base::write_file_atomically(path(), "{\"text\":\"A\"}\n");
  EXPECT_SAYS(test::message_of<base::DataError>([&] { (void)open(); }), "has changed");
  base::write_file_atomically(path(), "");
  EXPECT_SAYS(test::message_of<base::DataError>([&] { (void)open(); }), "has changed");
  std::filesystem::remove(CorpusFile::about(path()));
  base::write_file_atomically(path(), "mine\n");
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { (void)open(); }), "found other text");
  EXPECT_EQ(written(), "mine\n");
}

TEST_F(Corpus, GivesUpAModelThatNeverWritesWhatIsWorthKeeping) {
  auto file = open();
  file.add(row(0, "a"));
  const auto said = test::message_of<base::ValidationError>([&] {
    for (std::int64_t number = 1;; ++number) file.add(row(number, "a"));
  });
  EXPECT_NE(said.find("none among the last 256"), std::string::npos) << said;
  EXPECT_NE(said.find("256 duplicates"), std::string::npos) << said;
  EXPECT_EQ(written(), "{\"text\":\"a\"}\n");
}

}  // namespace
}  // namespace retort::pipeline
