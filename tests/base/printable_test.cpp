#include "retort/base/printable.h"

#include <gtest/gtest.h>

namespace retort::base {
namespace {

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b]0;owned\x07"), "\\x1b]0;owned\\x07");
  EXPECT_EQ(printable("a\r\n\tb\x7f"), "a\\x0d\\x0a\\x09b\\u007f");
  EXPECT_EQ(printable("\xc2\x9b[31m"), "\\u009b[31m");  // CSI as one character
  EXPECT_EQ(printable("x\xe2\x80\xae"
                      "y\xe2\x81\xa6z"),
            "x\\u202ey\\u2066z");  // turned direction
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
}

TEST(Printable, LeavesTextAlone) {
  const std::string text = "Grüße, 你好, नमस्ते, 👩‍👩‍👧, שלום\xe2\x80\x8f!";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, KeepsTheNewlinesThatAreAskedFor) {
  const std::string text = "a\n  b\nretort: all is well\t.";
  EXPECT_EQ(printable(text, Newlines::none), "a\\x0a  b\\x0aretort: all is well\\x09.");
  EXPECT_EQ(printable(text, Newlines::indented), "a\n  b\\x0aretort: all is well\\x09.");
  EXPECT_EQ(printable(text, Newlines::all), text);
}

TEST(Printable, QuotesAreCutBetweenCharacters) {
  EXPECT_EQ(quote("a\nb"), "\"a\\x0ab\"");
  EXPECT_EQ(quote(std::string(119, 'k') + "é" + std::string(900'000, 'k')),
            "\"" + std::string(119, 'k') + "...\"");
}

TEST(AsUtf8, KeepsPathsApartThatAreNoText) {
  EXPECT_EQ(as_utf8("/data/caf\xe9/m\n"), "/data/caf\\xe9/m\n");
  EXPECT_NE(as_utf8("\xff"), as_utf8("\xfe"));
}

}  // namespace
}  // namespace retort::base
