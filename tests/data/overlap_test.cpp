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
  const auto found = overlaps({whole, copy}, {copy});
  ASSERT_EQ(found.size(), 1U) << "beside itself it has none";
  EXPECT_EQ(found[0].learned, "whole");
  EXPECT_EQ(found[0].measured, "copy");
  EXPECT_EQ(found[0].documents, 3);
  EXPECT_TRUE(overlaps({whole}, {copy}, 10).empty()) << "too long to look";

  auto twice = few;
  twice[4] = few[9];  // a duplicate on the other side of a rule by number
  auto itself = source({write("twice.jsonl", test::jsonl(twice))}, "itself");
  itself.held_out.every = 10;
  ASSERT_EQ(overlaps({itself}, {itself}).size(), 1U);
  EXPECT_EQ(overlaps({itself}, {itself})[0].documents, 1);
  itself.held_out = {.fraction = 0, .every = 0, .paths = {write("held.jsonl", test::jsonl({few[9]}))}};
  EXPECT_TRUE(overlaps({itself}, {itself}).empty()) << "those texts are left out";
}

TEST_F(Overlaps, NothingIsReadWhereTheRulesExcludeThem) {
  auto first = source({write("broken.jsonl", "{")}, "first"), second = first;
  second.name = "second";
  first.held_out.fraction = second.held_out.fraction = 0.1;
  EXPECT_TRUE(overlaps({first, second}, {first, second}).empty());
  second.held_out.fraction = 0.2;  // what it holds out, the other may learn
  EXPECT_THROW(overlaps({first}, {second}), base::DataError);
}

}  // namespace
}  // namespace retort::data
