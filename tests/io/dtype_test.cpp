#include "retort/io/dtype.h"

#include <gtest/gtest.h>

#include "retort/io/quote.h"

namespace retort::io {
namespace {

constexpr Dtype kAll[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i64,
                          Dtype::i32, Dtype::i16, Dtype::i8,  Dtype::u8,   Dtype::boolean};

TEST(Dtype, EverySpellingIsReadBack) {
  for (const Dtype dtype : kAll) {
    EXPECT_EQ(parse_dtype(name(dtype)), dtype);
    EXPECT_EQ(parse_long_dtype(long_name(dtype)), dtype);
  }
}

TEST(Dtype, SizesBelongToTheNames) {
  EXPECT_EQ(item_bytes(Dtype::bf16), 2U);
  EXPECT_EQ(name(Dtype::bf16), "BF16");
  EXPECT_EQ(long_name(Dtype::bf16), "bfloat16");
  EXPECT_EQ(item_bytes(Dtype::f64), 8U);
  EXPECT_EQ(item_bytes(Dtype::boolean), 1U);
}

TEST(Dtype, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(parse_dtype("F8_E4M3"));
  EXPECT_FALSE(parse_dtype("bf16"));
  EXPECT_FALSE(parse_long_dtype(""));
}

TEST(Quote, EscapesControlCharactersAndCutsBetweenCharacters) {
  EXPECT_EQ(quote("a\nb\x1b[2J"), "\"a\\x0ab\\x1b[2J\"");
  const std::string long_text = std::string(119, 'x') + "\u00e9 and more";
  EXPECT_EQ(quote(long_text), "\"" + std::string(119, 'x') + "...\"");
}

// A message may end in JSON, which holds nothing else.
TEST(Quote, EscapesBytesThatAreNotUtf8) {
  for (const char* text : {"\u00e9", "\u2581", "\U0001F600", "\uD7FF", "\U0010FFFF"})
    EXPECT_EQ(quote(text), "\"" + std::string(text) + "\"");
  EXPECT_EQ(quote("a\xff\xc3"), R"("a\xff\xc3")");
  EXPECT_EQ(quote("\xc0\xaf"), R"("\xc0\xaf")") << "longer than need be";
  EXPECT_EQ(quote("\xe0\x9f\xbf"), R"("\xe0\x9f\xbf")");
  EXPECT_EQ(quote("\xed\xa0\x80"), R"("\xed\xa0\x80")") << "half of a pair";
  EXPECT_EQ(quote("\xf4\x90\x80\x80"), R"("\xf4\x90\x80\x80")") << "beyond the last character";
}

}  // namespace
}  // namespace retort::io
