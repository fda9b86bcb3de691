#include "retort/base/units.h"

#include <gtest/gtest.h>

#include <clocale>
#include <vector>

namespace retort::base {
namespace {

TEST(Units, OfBytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(11'031'520), "11.0 MB");
  EXPECT_EQ(human_bytes(2'500'000'000), "2.50 GB");
}

TEST(Units, OfCounts) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(12'123), "12.1 k");
  EXPECT_EQ(human_count(5'509'824), "5.51 M");
  EXPECT_EQ(human_count(8.03e9), "8.03 B");
  EXPECT_EQ(human_flops(4.25e8), "0.425 GFLOP");
  EXPECT_EQ(human_flops(7.654e13), "76.5 TFLOP");
  EXPECT_EQ(human_flops(2e15), "2 PFLOP");
}

TEST(Units, OfSeconds) {
  EXPECT_EQ(human_seconds(12.34), "12.3 s");
  EXPECT_EQ(human_seconds(200), "3 min 20 s");
  EXPECT_EQ(human_seconds(3720), "1 h 02 min");
  EXPECT_EQ(human_seconds(59.9), "1 min 00 s");
}

TEST(Units, CountsOfPeople) {
  EXPECT_EQ(parse_count("120000"), 120'000);
  EXPECT_EQ(parse_count("60k"), 60'000);
  EXPECT_EQ(parse_count("60K"), 60'000);
  EXPECT_EQ(parse_count("1.5M"), 1'500'000);
  EXPECT_EQ(parse_count("2e9"), 2'000'000'000);
  EXPECT_EQ(parse_count("3G"), 3'000'000'000);
  EXPECT_EQ(parse_count("3B"), 3'000'000'000);
  EXPECT_EQ(parse_count("0.001T"), 1'000'000'000);
  EXPECT_EQ(parse_count("+7"), 7);
  EXPECT_EQ(parse_count("-5"), -5);
}

TEST(Units, WhatIsNoCount) {
  for (const char* text : {"", "k", "1.5", "0.0001k", "1k5", "1 k", " 1", "1_000", "1,000", "0x10", "inf",
                           "nan", "1e16", "9999999T", "--1", "+-1", "one"})
    EXPECT_FALSE(parse_count(text)) << text << " was read as " << *parse_count(text);
}

TEST(Units, NumbersOfPeople) {
  EXPECT_EQ(parse_number("1e-5"), 1e-5);
  EXPECT_EQ(parse_number("+0.5"), 0.5);
  EXPECT_EQ(parse_number("-3"), -3);
  for (const char* text : {"", "+", "1.5x", "1,5", " 1", "1 ", "+-1", "inf", "nan", "1e999"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Units, DoNotDependOnTheLocale) {
  if (!std::setlocale(LC_NUMERIC, "de_DE.UTF-8")) std::setlocale(LC_NUMERIC, "C");
  EXPECT_EQ(parse_number("1.5"), 1.5);
  EXPECT_EQ(parse_count("1.5M"), 1'500'000);
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Nearest, IsTheNameThatWasMeant) {
  const std::vector<std::string> names{"run", "eval", "generate", "tokenize"};
  EXPECT_EQ(nearest("genrate", names), "generate");
  EXPECT_EQ(nearest("evla", names), "eval");
  EXPECT_EQ(nearest("something", names), "");
  EXPECT_EQ(nearest("", std::vector<std::string>{}), "");
}

TEST(EditDistance, CountsInsertionsRemovalsAndReplacements) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("sitting", "kitten"), 3U);
  EXPECT_EQ(edit_distance("lr", "lr"), 0U);
  const std::string word(256, 'x'), longer = word + "x";
  EXPECT_EQ(edit_distance(word, word), 0U);
  EXPECT_EQ(edit_distance(longer, longer), 257U);
  EXPECT_EQ(nearest(longer, std::vector<std::string>{longer}), "");
}

}  // namespace
}  // namespace retort::base
