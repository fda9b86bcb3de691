// Documents that are both learned from and measured are found, and nothing is read where they cannot be.
#include "retort/data/overlap.h"

#include "data/corpus.h"
#include "retort/base/error.h"

namespace retort::data {
namespace {

class Overlaps : public test::Corpus {};

TEST_F(Overlaps, AreFoundBetweenSourcesOfDifferentRules) {
  const auto texts = test::numbered_texts("a", 100);
  auto whole = source({write("whole.jsonl", test::jsonl(texts))}, "whole");
  auto few = texts;
  few.resize(30);
  auto copy = source({write("copy.jsonl", test::jsonl(few))}, "copy");
  copy.held_out.every = 10;  // 9, 19, 29
  const auto found = overlaps({whole, copy}, data::Split::training, {copy}).found;
  ASSERT_EQ(found.size(), 1U) << "beside itself it has none";
  EXPECT_EQ(found[0].used, "whole");
  EXPECT_EQ(found[0].measured, "copy");
  EXPECT_EQ(found[0].documents, 3);
  const auto long_text = overlaps({whole}, data::Split::training, {whole, copy}, 10);
  EXPECT_TRUE(long_text.found.empty());
  EXPECT_EQ(long_text.unread, std::vector<std::string>{"whole"});

  auto twice = few;
  twice[4] = few[9];  // a duplicate on the other side of a rule by number
  auto itself = source({write("twice.jsonl", test::jsonl(twice))}, "itself");
  itself.held_out.every = 10;
  ASSERT_EQ(overlaps({itself}, data::Split::training, {itself}).found.size(), 1U);
  EXPECT_EQ(overlaps({itself}, data::Split::training, {itself}).found[0].documents, 1);
  itself.held_out = {.fraction = 0, .every = 0, .paths = {write("held.jsonl", test::jsonl({few[9]}))}};
  EXPECT_TRUE(overlaps({itself}, data::Split::training, {itself}).found.empty())
      << "those texts are left out";
}

TEST_F(Overlaps, NothingIsReadWhereTheRulesExcludeThem) {
  auto first = source({write("broken.jsonl", "{")}, "first"), second = first;
  second.name = "second";
  first.held_out.fraction = second.held_out.fraction = 0.1;
  EXPECT_TRUE(overlaps({first, second}, data::Split::training, {first, second}).found.empty());
  second.held_out.fraction = 0.2;  // what it holds out, the other may learn
  EXPECT_THROW(overlaps({first}, data::Split::training, {second}), base::DataError);
}

// What a choice was made by is measured again.
TEST_F(Overlaps, OfHeldOutDocumentsWithEachOther) {
  const auto texts = test::numbered_texts("a", 20);
  auto tenth = source({write("all.jsonl", test::jsonl(texts))}, "tenth"), fifth = tenth, other = tenth;
  tenth.held_out.every = 10;  // 9, 19
  fifth.name = "fifth";
  fifth.held_out.every = 5;  // 4, 9, 14, 19
  other.name = "other";
  other.held_out.paths = {write("held.jsonl", test::jsonl({texts[1]}))};
  const auto found = overlaps({fifth}, data::Split::held_out, {fifth, tenth, other}).found;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].documents, 4);
  EXPECT_EQ(found[1].measured, "tenth");
  EXPECT_EQ(found[1].documents, 2);
}

}  // namespace
}  // namespace retort::data
