#include "retort/base/json.h"

#include <gtest/gtest.h>

namespace retort::base {
namespace {

JsonFault fault_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, limits);
  } catch (const JsonFault& fault) {
    return fault;
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 80);
  return {};
}

TEST(Json, ReadsEveryKindOfValueInOrder) {
  const std::string text =
      R"({"z":[1,-2,2.5,null,true,[],{}],"a":{"b":"\u00e9","a":18446744073709551615},"":[[[0]]]})";
  const Json json = parse_json(text);
  EXPECT_EQ(json.dump(), Json::parse(text).dump());
  EXPECT_EQ(json, Json::parse(text));
  EXPECT_EQ(parse_json(" 7 "), 7);
  EXPECT_EQ(parse_json("\"x\""), "x");
}

TEST(Json, RefusesDuplicateKeysInOneObjectOnly) {
  EXPECT_NE(fault_of(R"({"a":1,"b":{"a":1,"a":2}})").reason.find("twice"), std::string::npos);
  EXPECT_EQ(fault_of("{\"\\u001b[31m\": 1, \"\\u001b[31m\": 2}").reason,
            "the key \"\\x1b[31m\" stands twice in one object");
  const std::string key(100'000, 'k');
  EXPECT_LT(fault_of("{\"" + key + "\": 1, \"" + key + "\": 2}").reason.size(), 200U);
  EXPECT_NO_THROW(parse_json(R"({"a":{"a":[{"a":1},{"a":1}]}})"));
}

TEST(Json, CapsDepthAndSize) {
  EXPECT_NO_THROW(parse_json("[[[]]]", {.max_depth = 3}));
  EXPECT_NE(fault_of("[[[[]]]]", {.max_depth = 3}).reason.find("deeper"), std::string::npos);
  EXPECT_NE(fault_of(std::string(1000000, '['), {}).reason.find("deeper"), std::string::npos);
  EXPECT_NE(fault_of("[1, 2]", {.max_bytes = 5}).reason.find("6 bytes"), std::string::npos);
}

TEST(Json, CapsTheNumberOfValues) {
  EXPECT_NO_THROW(parse_json("[[],[1],{\"a\":null}]", {.max_values = 6}));
  EXPECT_EQ(fault_of("[[],[1],{\"a\":null}]", {.max_values = 5}).reason, "more than 5 values");
}

TEST(Json, FindsAKeyThatStandsTwiceAtAnyDepth) {
  EXPECT_NE(
      fault_of(R"({"x":{"b":1},"y":[{"a":1,"c":{"a":1,"b":2},"a":2}]})").reason.find("\"a\" stands twice"),
      std::string::npos);
  EXPECT_NE(fault_of(R"({"\u0061":1,"a":{}})").reason.find("\"a\" stands twice"), std::string::npos);
  EXPECT_NE(fault_of(R"({"":1,"":2})").reason.find("\"\" stands twice"), std::string::npos);
  EXPECT_NO_THROW(parse_json(R"({"a":1,"ab":{"b":1,"a":2},"b":1,"":{"":{}}})"));
}

TEST(Json, IsSeenInItsOrder) {
  class Order : public JsonVisitor {
   public:
    void scalar(Json&& value) override { seen += value.dump() + ' '; }
    void begin(Json&& empty) override { seen += empty.dump() + ' '; }
    void key(std::string&& name) override { seen += name + ": "; }
    void end() override { seen += ". "; }
    std::string seen;
  } order;
  visit_json(R"({"b":[1,"x",null],"a":{"c":-2.5}})", order);
  EXPECT_EQ(order.seen, "{} b: [] 1 \"x\" null . a: {} c: -2.5 . . ");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1,]"), std::string("NaN"), std::string("1e999"),
        std::string("\"\xff\""), std::string("{} {}"), std::string("{}\0", 3), std::string("[1\0]", 4),
        std::string("\xEF\xBB\xBF{}")})
    EXPECT_FALSE(fault_of(text).reason.empty());
  EXPECT_EQ(fault_of("[1,\n x]").byte, 5U);
}

TEST(Json, QuotesTheEndOnlyOfALongStringThatNeverEnds) {
  std::string text = "[\"";
  for (int i = 0; i < 5000; ++i) text += "\u00e9";
  const auto reason = fault_of(text + " the end").reason;
  EXPECT_NE(reason.find("missing closing quote; last read: '...\u00e9"), std::string::npos) << reason;
  EXPECT_NE(reason.find("the end'"), std::string::npos) << reason;
  EXPECT_LT(reason.size(), 200U);
}

TEST(Json, TakesLinearTimeForManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 300000; ++i) text += "\"key" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  const Json json = parse_json(text, {.max_bytes = text.size()});  // minutes with a search per key
  EXPECT_EQ(json.size(), 300000U);
  EXPECT_EQ(json.begin().key(), "key0");
}

}  // namespace
}  // namespace retort::base
