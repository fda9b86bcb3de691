// Texts that grow id by id; that they equal what is decoded at once, every file of cases of other tests says.
#include "retort/text/decoded_text.h"

#include <gtest/gtest.h>

#include <fstream>

#include "oracle_cases.h"
#include "retort/base/json.h"
#include "retort/base/random.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

// What is decoded again with each id is short, however long the text: else a text of n tokens takes n^2.
TEST(DecodedText, DecodesFewIdsAgain) {
  const auto tokenizer = Tokenizer::from_file(test::source() / "models" / "europa-5m");
  std::string text;
  for (int i = 0; i < 200; ++i) text += "Wörter und 数 \xF0\x9F\x98\x80 numbers 123.\n";
  DecodedText growing(tokenizer);
  for (const auto id : tokenizer.encode(text, false)) {
    growing.add(id);
    ASSERT_LE(growing.text().size() - growing.settled_bytes(), 32U);
  }
  EXPECT_EQ(growing.text(), text);
}

// Rules of decoders by which the text of ids depends on those before or behind.
TEST(DecodedText, KeepsToRulesOfBeginningsAndEnds) {
  const test::TemporaryDirectory directory;
  const base::Json vocabulary = {{"\u2581", 0}, {"a", 1},       {"\u2581a", 2}, {"<0xC3>", 3},
                                 {"<0xA4>", 4}, {"b", 5},       {"\u00C3", 6},  {"\u00A4", 7},
                                 {" ", 8},      {"\u2581b", 9}, {"ab", 10}};
  const base::Json fallback = {{"type", "ByteFallback"}}, fuse = {{"type", "Fuse"}},
                   bytes = {{"type", "ByteLevel"}},
                   space = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                   letters = {{"type", "Replace"}, {"pattern", {{"String", "ab"}}}, {"content", "c"}},
                   begin = {{"type", "Strip"}, {"content", " "}, {"start", 2}, {"stop", 0}},
                   end = {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}},
                   meta = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
  const std::vector<base::Json> decoders = {
      nullptr,
      bytes,
      meta,
      fallback,
      {{"type", "Sequence"}, {"decoders", {space, fallback, fuse, begin}}},
      {{"type", "Sequence"}, {"decoders", {space, fuse, begin, end}}},
      {{"type", "Sequence"}, {"decoders", {fuse, letters}}},
      {{"type", "Sequence"}, {"decoders", {bytes, begin}}},
      {{"type", "Sequence"}, {"decoders", {meta, fallback, fuse}}},
      {{"type", "Sequence"}, {"decoders", {fuse, bytes}}},
      {{"type", "Sequence"}, {"decoders", {fallback, fallback, meta}}}};
  for (const auto& decoder : decoders) {
    SCOPED_TRACE(decoder.dump());
    std::ofstream(directory / "tokenizer.json")
        << base::Json{{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", base::Json::array()}}},
                      {"decoder", decoder}};
    const auto tokenizer = Tokenizer::from_file(directory.path());
    base::Random random(0, 0);
    for (int text = 0; text < 200; ++text) {
      std::vector<std::int32_t> ids;
      for (int i = 0; i < 12; ++i) ids.push_back(static_cast<std::int32_t>(random.next_below(11)));
      test::expect_decoded_as_it_grows(tokenizer, ids);
    }
  }
}

TEST(TextSearch, FindsWhatLiesOnBothSidesOfASettledPlace) {
  const std::vector<std::string> wanted = {"STOP", "\n\n"};
  TextSearch search(wanted);
  EXPECT_FALSE(search.found("some ST", 5));
  EXPECT_FALSE(search.found("some STO", 7));
  EXPECT_TRUE(search.found("some STOP", 8));
  TextSearch other(wanted);
  EXPECT_FALSE(other.found("STO", 3));
  EXPECT_FALSE(other.found("STO\xEF\xBF\xBD", 3));
  EXPECT_TRUE(other.found("STOP it", 3)) << "what was not settled became another character";
}

}  // namespace
}  // namespace retort::text
