// Texts that make naive tokenizers quadratic or overflow their stack, and bytes that are no text at all.  No
// time is measured: quadratic work on four million characters would run into the test's time limit.

#include <gtest/gtest.h>

#include "oracle_cases.h"
#include "retort/base/random.h"
#include "retort/text/tokenizer.h"
#include "retort/text/unicode.h"
#include "support/outside_data.h"

namespace retort::text {
namespace {

constexpr std::size_t kLong = 4'000'000;

Tokenizer made(const std::string& name) {
  return Tokenizer::from_file(test::oracles("text") / "made" / name);
}

std::string repeated(std::string_view unit) {
  std::string text;
  text.reserve(kLong + unit.size());
  while (text.size() < kLong) text.append(unit);
  return text;
}

std::string random_letters() {
  std::string text;
  text.reserve(kLong);
  base::Random random(3, 0);
  while (text.size() < kLong) text.push_back(static_cast<char>('a' + random.next_below(26)));
  return text;
}

void expect_round_trip(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.encode(text);
  EXPECT_TRUE(tokenizer.decode(ids) == text);
  EXPECT_LT(ids.size(), text.size() + 10);
}

TEST(LongText, ByteLevelTakesFourMillionBytesWithoutSpace) {
  for (const char* name : {"europa-5m", "gpt2"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = made(name);
    expect_round_trip(tokenizer, random_letters());
    expect_round_trip(tokenizer, repeated("A"));
  }
}

TEST(LongText, ByteLevelTakesFourMillionSpacesAndNewlines) {
  for (const char* name : {"europa-5m", "gpt2"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = made(name);
    expect_round_trip(tokenizer, repeated(" "));
    expect_round_trip(tokenizer, repeated(" \n") + "x");
  }
}

TEST(LongText, TekkenDoesNotBacktrackOverLongRuns) {
  const Tokenizer tokenizer = made("tekken");
  expect_round_trip(tokenizer, repeated("A"));
  expect_round_trip(tokenizer, repeated("\u0301"));
  expect_round_trip(tokenizer, "\u65e5" + repeated("A"));
}

TEST(LongText, SentencePieceStyleTakesFourMillionBytesWithoutSpace) {
  const Tokenizer tokenizer = made("spm-fallback");
  expect_round_trip(tokenizer, random_letters());
  expect_round_trip(tokenizer, repeated("A"));
  expect_round_trip(tokenizer, repeated(" "));
}

TEST(LongText, UnknownCharactersFuse) {
  const auto ids = made("spm-unk").encode(repeated("\u4e00"));
  EXPECT_LE(ids.size(), 4u);
}

TEST(LongText, AddedTokensThatStripSpacesStayLinear) {
  const Tokenizer tokenizer = made("added-byte-level");
  const auto ids = tokenizer.encode(repeated(" ") + "<mask>" + repeated(" "));
  EXPECT_FALSE(ids.empty());
  EXPECT_FALSE(tokenizer.encode(repeated("<both> ")).empty());
}

TEST(InvalidUtf8, EncodesLikeItsReplacementAndDecodesToValidText) {
  base::Random random(5, 0);
  for (const char* name : {"europa-5m", "spm-fallback", "spm-unk", "added-nfc", "metaspace-first-split"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = made(name);
    for (int round = 0; round < 500; ++round) {
      std::string bytes;
      for (std::uint64_t left = random.next_below(60); left > 0; --left) {
        const auto byte = random.next_below(random.next_below(2) == 0 ? 128 : 256);
        bytes.push_back(static_cast<char>(byte));
      }
      std::string storage;
      const std::string valid(to_valid_utf8(bytes, storage));
      const auto ids = tokenizer.encode(bytes);
      ASSERT_EQ(ids, tokenizer.encode(valid));
      const std::string decoded = tokenizer.decode(ids, false);
      ASSERT_EQ(valid_utf8_prefix(decoded), decoded.size());
    }
  }
}

TEST(InvalidUtf8, RandomIdsDecodeToValidText) {
  base::Random random(6, 0);
  for (const auto& folder : test::folders_in(test::oracles("text") / "made")) {
    SCOPED_TRACE(folder.filename().string());
    const Tokenizer tokenizer = Tokenizer::from_file(folder);
    const auto size = static_cast<std::uint64_t>(tokenizer.vocab_size());
    for (int round = 0; round < 50; ++round) {
      std::vector<std::int32_t> ids;
      for (int i = 0; i < 20; ++i) ids.push_back(static_cast<std::int32_t>(random.next_below(size)));
      const std::string decoded = tokenizer.decode(ids, false);
      ASSERT_EQ(valid_utf8_prefix(decoded), decoded.size());
    }
  }
}

}  // namespace
}  // namespace retort::text
