#include "retort/io/yaml.h"

#include <gtest/gtest.h>

#include <string>

#include "retort/base/error.h"

namespace retort::io {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_yaml(text, "r.yaml");
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Yaml, KnowsTheLineOfEveryValue) {
  const YamlValue root = parse_yaml("a: 1\nb:\n  c: [x,\n      y]\n", "r.yaml");

  EXPECT_EQ(root.find("a")->place, "r.yaml:1");
  EXPECT_EQ(root.find("b")->find("c")->place, "r.yaml:3");
  EXPECT_EQ(root.find("b")->find("c")->items.at(1).place, "r.yaml:4");
  EXPECT_EQ(root.find("b")->find("c")->items.at(1).text, "y");
}

TEST(Yaml, RefusesDuplicateKeysWithTheirLine) {
  EXPECT_EQ(refusal("a: 1\nb: 2\na: 3\n"), "r.yaml:3: key 'a' is given twice; keep one of them.");
}

TEST(Yaml, FindsADuplicateAmongManyKeys) {
  std::string text;
  for (int i = 0; i < 49'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(parse_yaml(text, "r.yaml").entries.size(), 49'000U);
  EXPECT_EQ(refusal(text + "k7: 1\n"), "r.yaml:49001: key 'k7' is given twice; keep one of them.");
  EXPECT_EQ(refusal("a: {x: 1}\nb: {x: 1, y: {x: 1}, x: 2}\n"),
            "r.yaml:2: key 'x' is given twice; keep one of them.");
}

TEST(Yaml, RefusesAliasesBeforeTheyCanMultiply) {
  EXPECT_NE(refusal("a: &x [1, 2]\nb: [*x, *x]\n").find("r.yaml:2: aliases are not supported"),
            std::string::npos);
}

TEST(Yaml, RefusesDeepNestingOfAnyLength) {
  for (const std::size_t depth : {17UL, 400UL, 100'000UL}) {
    EXPECT_NE(refusal("a: " + std::string(depth, '[')).find("r.yaml"), std::string::npos) << depth;
    EXPECT_NE(refusal(std::string(depth, '{')).find("r.yaml"), std::string::npos) << depth;
  }
  std::string block;
  for (int i = 0; i < 200; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(refusal(block).find("nested deeper"), std::string::npos);
}

TEST(Yaml, RefusesWhatIsTooBigOrNoText) {
  EXPECT_NE(refusal(std::string((1 << 20) + 1, 'a')).find("bytes, expected at most"), std::string::npos);
  EXPECT_NE(refusal(std::string("a: \0", 4)).find("zero byte"), std::string::npos);
  EXPECT_NE(refusal("a: \xFF\xFE\n").find("not UTF-8"), std::string::npos);
  std::string many = "a: [";
  for (int i = 0; i < 60'000; ++i) many += "1,";
  EXPECT_NE(refusal(many + "]").find("more than 50000 values"), std::string::npos);
}

TEST(Yaml, RefusesTagsComplexKeysAndSecondDocuments) {
  EXPECT_NE(refusal("a: !!python/object:os.system x\n").find("tags such as"), std::string::npos);
  EXPECT_NE(refusal("? [a, b]\n: 1\n").find("a key has to be a word"), std::string::npos);
  EXPECT_NE(refusal("a: 1\n---\nb: 2\n").find("several YAML documents"), std::string::npos);
  EXPECT_NE(refusal("a: {b: 1\n").find("not valid YAML"), std::string::npos);
}

TEST(Yaml, ReadsWhatIsTaggedAsNull) {
  EXPECT_EQ(parse_yaml("a: !!null \"null\"\n", "r.yaml").find("a")->kind, YamlValue::Kind::null);
}

TEST(Yaml, RefusesPythonFunctionsByTheirKey) {
  EXPECT_EQ(
      refusal("a: 1\nprocess_docs: !function utils.process_docs\n"),
      "r.yaml:2: key 'process_docs' uses a Python function, which Retort does not run; write a template "
      "or a value.");
}

}  // namespace
}  // namespace retort::io
