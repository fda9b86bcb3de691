// Documents that are both learned from and measured are found, and nothing is read where they cannot be.
#include "retort/data/overlap.h"

#include "data/corpus.h"
#include "retort/base/error.h"
#include "retort/data/held_out_texts.h"
#include "retort/data/text_runs.h"

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

TEST_F(Overlaps, AreFoundWithDocumentsThatAreNoSource) {
  const auto texts = test::numbered_texts("a", 40);
  auto used = source({write("used.jsonl", test::jsonl(texts))}, "used");
  used.held_out.every = 10;  // 9, 19, 29, 39
  const std::vector<data::MeasuredTexts> measured{{"quiz", {texts[3], texts[9], texts[20]}},
                                                  {"other", {"a question that nobody asked before"}}};
  const auto found = overlaps({used}, measured).found;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].used, "used");
  EXPECT_EQ(found[0].measured, "quiz");
  EXPECT_EQ(found[0].documents, 2) << "one of the three is held out";
  const auto too_long = overlaps({used}, measured, 10);
  EXPECT_TRUE(too_long.found.empty());
  EXPECT_EQ(too_long.unread, std::vector<std::string>{"used"});
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

// Paragraphs of words in an order of their own.
std::vector<std::string> paragraphs(int count, std::uint64_t seed, const std::string& between = " ") {
  base::Random random(seed, 1);
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (int word = 0; word < 60; ++word)
      text += (word > 0 ? between : "") + base::join("word", random.next_below(5000));
    all.push_back(text);
  }
  return all;
}

std::string joined(const std::vector<std::string>& texts, const std::string& between) {
  std::string all;
  for (const auto& text : texts) all += text + between;
  return all;
}

TEST_F(Overlaps, AreFoundWhereTheSameTextIsCutOtherwise) {
  auto texts = paragraphs(90, 3);
  for (std::size_t i = 0; i < texts.size(); i += 3) texts[i] = "\n" + texts[i];  // every third gap is wider
  auto coarse = source({write("book.txt", joined(texts, "\n\n"))}, "coarse"), fine = coarse;
  coarse.separator = "\n\n\n", fine.separator = "\n\n";
  fine.name = "fine";
  coarse.held_out.every = fine.held_out.every = 10;
  const auto held_out = [&](const SourceOptions& of) {
    return std::ssize(this->texts(of, data::Split::held_out));
  };
  // One in ten of either is held out of the other too.
  for (const auto& [learned, measured] : {std::pair{coarse, fine}, std::pair{fine, coarse}}) {
    const auto found = overlaps({learned}, data::Split::training, {measured}).found;
    ASSERT_EQ(found.size(), 1U) << learned.name;
    EXPECT_GE(2 * found[0].documents, held_out(measured)) << learned.name;
    EXPECT_LE(found[0].documents, held_out(measured));
  }
  coarse.held_out.every = fine.held_out.every = 0;
  coarse.held_out.fraction = fine.held_out.fraction = 0.1;
  EXPECT_EQ(overlaps({coarse}, data::Split::training, {fine}).found.size(), 1U)
      << "one fraction keeps equal documents apart only";
  auto lines = source({write("book.jsonl", test::jsonl(paragraphs(90, 3, "\n")))}, "lines");
  lines.held_out.every = 10;
  coarse.held_out.fraction = 0;
  EXPECT_EQ(overlaps({coarse}, data::Split::training, {lines}).found.at(0).documents, 9)
      << "other white space, and lines of JSON";
}

TEST_F(Overlaps, BoilerplateAndQuotationsAreNone) {
  const auto licence = paragraphs(1, 7)[0], quoted = paragraphs(1, 8)[0].substr(0, 120);
  auto learned_texts = paragraphs(50, 5), measured_texts = paragraphs(50, 6);
  for (auto& text : learned_texts) text = licence + "\n" + text;
  for (auto& text : measured_texts) text = licence + "\n" + text + "\n" + licence.substr(0, 200);
  learned_texts.push_back(quoted + ". " + paragraphs(1, 9)[0]);
  measured_texts[9] += " " + quoted;
  auto learned = source({write("learned.jsonl", test::jsonl(learned_texts))}, "learned");
  auto measured = source({write("measured.jsonl", test::jsonl(measured_texts))}, "measured");
  measured.held_out.every = 10;
  EXPECT_TRUE(overlaps({learned}, data::Split::training, {measured}).found.empty());
  measured.held_out.every = 50;  // one document: no other tells that its licence is one
  EXPECT_TRUE(overlaps({learned}, data::Split::training, {measured}).found.empty());
}

TEST_F(Overlaps, AreFoundInMoreTextThanIsKept) {
  const auto texts = paragraphs(300, 4);
  HeldOutTexts few(6000);
  for (const auto& text : texts) few.add(text);
  for (int i = 0; i < 150; ++i) {
    const auto text = texts[2 * i] + " " + texts[2 * i].substr(0, 100);
    few.look_in(text, text_runs(text, few.limit()));
  }
  EXPECT_GE(few.found(), 100);
  EXPECT_LE(few.found(), 150);
  few.restart();
  EXPECT_EQ(few.found(), 0);
}

}  // namespace
}  // namespace retort::data
