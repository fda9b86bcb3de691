#include "retort/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace retort::base {
namespace {

TEST(Utf8, CountsTheBytesOfACharacter) {
  EXPECT_EQ(utf8_character_bytes("a"), 1U);
  EXPECT_EQ(utf8_character_bytes("\xC3\xA9t"), 2U);
  EXPECT_EQ(utf8_character_bytes("\xE2\x82\xAC"), 3U);
  EXPECT_EQ(utf8_character_bytes("\xF0\x9F\x98\x80"), 4U);
  EXPECT_EQ(utf8_character_bytes(""), 0U);
}

TEST(Utf8, KnowsWhatIsNone) {
  for (const std::string text : {"\x80", "\xC0\xAF", "\xC3", "\xC3\x28", "\xE0\x80\xAF", "\xED\xA0\x80",
                                 "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(is_utf8(text)) << text.size();
    EXPECT_FALSE(is_utf8("good " + text)) << text.size();
    EXPECT_EQ(utf8_character_bytes(text), 0U) << text.size();
  }
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("na\xC3\xAFve \xF0\x9F\x98\x80"));
  EXPECT_TRUE(is_utf8(std::string("with\0zero", 9)));
}

}  // namespace
}  // namespace retort::base
