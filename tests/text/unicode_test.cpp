#include "retort/text/unicode.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/random.h"
#include "retort/text/byte_level.h"
#include "retort/text/split.h"
#include "support/outside_data.h"

namespace retort::text {
namespace {

std::string lossy(std::string_view bytes) {
  std::string storage;
  return std::string(to_valid_utf8(bytes, storage));
}

constexpr std::array kPatterns{KnownPattern::gpt2,         KnownPattern::llama3, KnownPattern::qwen2,
                               KnownPattern::tekken,       KnownPattern::o200k,  KnownPattern::deepseek3,
                               KnownPattern::spaces_at_end};

template <typename Pattern>
std::vector<std::string> pieces(const Pattern& pattern, std::string_view text) {
  std::vector<std::string> out;
  split_by(pattern, text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

using Pieces = std::vector<std::string>;

TEST(Unicode, ReplacesEveryMaximalInvalidPartByOneReplacementCharacter) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(lossy("plain \u00e9 \U0001F600"), "plain \u00e9 \U0001F600");
  EXPECT_EQ(lossy("a\x80z"), "a" + r + "z");
  EXPECT_EQ(lossy("\xC3"), r);
  EXPECT_EQ(lossy("\xC0\xAF"), r + r);                                // overlong
  EXPECT_EQ(lossy("\xE2\x82!"), r + "!");                             // cut short
  EXPECT_EQ(lossy("\xED\xA0\x80"), r + r + r);                        // surrogate
  EXPECT_EQ(lossy("\xF0\x9F\x98"), r);                                // cut short by the end
  EXPECT_EQ(lossy("\xF4\x90\x80\x80"), r + r + r + r);                // past U+10FFFF
  EXPECT_EQ(lossy("\xF1\x80\x80\xE1\x80\xC2\x41"), r + r + r + "A");  // table 3-8 of the Unicode Standard
  EXPECT_EQ(lossy("0123456\xFF"
                  "01234567\xFE"),
            "0123456" + r + "01234567" + r);
}

TEST(Unicode, ComposesCanonically) {
  EXPECT_EQ(to_nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(to_nfc("\u212b"), "\u00c5");
  EXPECT_EQ(to_nfc("s\u0307\u0323"), "\u1e69");
  EXPECT_EQ(to_nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(to_nfc("a\u0315\u0300"), "\u00e0\u0315");
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093c");  // excluded from composition
}

TEST(Unicode, KeepsTheOrderOfMarksThatAreNewerThanHfTokenizersNormalizer) {
  EXPECT_EQ(to_nfc("\u06e7\u0315\u0301"), "\u06e7\u0301\u0315");
  EXPECT_EQ(to_nfc("\u06e7\u0315\u0898"), "\u06e7\u0315\u0898");  // a mark since Unicode 14
}

TEST(Unicode, EveryByteHasItsOwnCharacter) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    append_utf8(token, byte_character(static_cast<std::uint8_t>(byte)));
    EXPECT_EQ(token_bytes(token), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(token_bytes("\u0120the"), " the");
  EXPECT_FALSE(token_bytes("\u65e5").has_value());
}

TEST(Split, FollowsTheKnownPatterns) {
  EXPECT_EQ(pieces(KnownPattern::gpt2, "He's 1234  x!"), (Pieces{"He", "'s", " 1234", " ", " x", "!"}));
  EXPECT_EQ(pieces(KnownPattern::gpt2, "HE'S"), (Pieces{"HE", "'", "S"}));
  EXPECT_EQ(pieces(KnownPattern::llama3, "HE'S 1234\n\n x!\n"),
            (Pieces{"HE", "'S", " ", "123", "4", "\n\n", " x", "!\n"}));
  EXPECT_EQ(pieces(KnownPattern::llama3, "a'\u017f  \r\n  b"), (Pieces{"a", "'\u017f", "  \r\n", " ", " b"}));
  EXPECT_EQ(pieces(KnownPattern::qwen2, "a12"), (Pieces{"a", "1", "2"}));
  EXPECT_EQ(pieces(KnownPattern::tekken, "CamelCASEWord a/b/\n"),
            (Pieces{"Camel", "CASEWord", " a", "/b", "/\n"}));
}

Pieces digit_pieces(std::string_view text, bool individual) {
  Pieces out;
  split_digits(text, individual, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

TEST(Split, CutsNastyStringsWhereHfTokenizersDoes) {
  const std::string content = base::read_file(test::oracles("text") / "pieces.jsonl");
  int lines = 0;
  for (std::size_t start = 0, end; (end = content.find('\n', start)) != content.npos;
       start = end + 1, ++lines) {
    const base::Json row = base::parse_json(std::string_view(content).substr(start, end - start));
    const auto text = row.at("text").get<std::string>();
    SCOPED_TRACE(testing::PrintToString(text));
    const auto wanted = [&](std::string_view name) { return row.at(std::string(name)).get<Pieces>(); };
    for (const auto pattern : kPatterns)
      EXPECT_EQ(pieces(pattern, text), wanted(name_of(pattern))) << name_of(pattern);
    for (const auto& [name, cut] : row.items())
      if (name.starts_with("re:")) {
        const auto runs = RunPattern::parse(std::string_view(name).substr(3));
        ASSERT_TRUE(runs) << name;
        EXPECT_EQ(pieces(*runs, text), cut.get<Pieces>()) << name;
      }
    EXPECT_EQ(digit_pieces(text, true), wanted("digits"));
    EXPECT_EQ(digit_pieces(text, false), wanted("digit-runs"));
  }
  EXPECT_GE(lines, 1500);
}

TEST(Split, RecognisesPatternsByTheirWholeText) {
  EXPECT_TRUE(recognise(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"));
  EXPECT_FALSE(recognise(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s)"));
  EXPECT_FALSE(recognise("(a+)+$"));
}

TEST(Split, TakesRunsOfOneClassAndNothingElse) {
  EXPECT_EQ(pieces(*RunPattern::parse(R"(\s?[a-cx]+)"), "yabx  abd"), (Pieces{"y", "abx", " ", " ab", "d"}));
  EXPECT_EQ(pieces(*RunPattern::parse(R"(\p{N}{1,3})"), "a12345"), (Pieces{"a", "123", "45"}));
  EXPECT_EQ(pieces(*RunPattern::parse(R"([\r\n])"), "a\n\r"), (Pieces{"a", "\n", "\r"}));
  for (const char* other : {"", "[", "[]", "[]+", "[^a]+", "[b-a]+", "[a-]+", R"([\w]+)", R"(\p{L}*)",
                            "[a]+?", "(a+)+", R"(\s?)", "[a]{1,3}+", "[[:alpha:]]", "[a&&b]", "a+"})
    EXPECT_FALSE(RunPattern::parse(other)) << other;
}

TEST(Split, LosesNothing) {
  const std::u32string alphabet = U"aA1 '\n\r\t/!s\u0301\u65e5\u02b0\u00a0\u0660\u180e\U0001F600";
  base::Random random(11, 0);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) append_utf8(text, alphabet[random.next_below(alphabet.size())]);
    for (const auto pattern : kPatterns) {
      std::string joined;
      for (const std::string& piece : pieces(pattern, text)) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

}  // namespace
}  // namespace retort::text
