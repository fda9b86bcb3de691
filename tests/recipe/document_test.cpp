#include "retort/recipe/document.h"

#include <gtest/gtest.h>

#include <string>

#include "retort/base/error.h"

namespace retort::recipe {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_yaml(text, "r.yaml");
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Document, KnowsTheLineOfEveryValue) {
  const Value root = parse_yaml("a: 1\nb:\n  c: [x,\n      y]\n", "r.yaml");

  EXPECT_EQ(root.find("a")->place, "r.yaml:1");
  EXPECT_EQ(root.find("b")->find("c")->place, "r.yaml:3");
  EXPECT_EQ(root.find("b")->find("c")->items.at(1).place, "r.yaml:4");
  EXPECT_EQ(root.find("b")->find("c")->items.at(1).text, "y");
}

TEST(Document, RefusesDuplicateKeysWithTheirLine) {
  EXPECT_EQ(refusal("a: 1\nb: 2\na: 3\n"), "r.yaml:3: key 'a' is given twice; keep one of them.");
}

TEST(Document, FindsADuplicateAmongManyKeys) {
  std::string text;
  for (int i = 0; i < 49'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(parse_yaml(text, "r.yaml").entries.size(), 49'000U);
  EXPECT_EQ(refusal(text + "k7: 1\n"), "r.yaml:49001: key 'k7' is given twice; keep one of them.");
  EXPECT_EQ(refusal("a: {x: 1}\nb: {x: 1, y: {x: 1}, x: 2}\n"),
            "r.yaml:2: key 'x' is given twice; keep one of them.");
}

TEST(Document, RefusesAliasesBeforeTheyCanMultiply) {
  EXPECT_NE(refusal("a: &x [1, 2]\nb: [*x, *x]\n").find("r.yaml:2: aliases are not supported"),
            std::string::npos);
}

TEST(Document, RefusesDeepNestingOfAnyLength) {
  for (const std::size_t depth : {17UL, 400UL, 100'000UL}) {
    EXPECT_NE(refusal("a: " + std::string(depth, '[')).find("r.yaml"), std::string::npos) << depth;
    EXPECT_NE(refusal(std::string(depth, '{')).find("r.yaml"), std::string::npos) << depth;
  }
  std::string block;
  for (int i = 0; i < 200; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(refusal(block).find("nested deeper"), std::string::npos);
}

TEST(Document, RefusesWhatIsTooBigOrNoText) {
  EXPECT_NE(refusal(std::string((1 << 20) + 1, 'a')).find("bytes, expected at most"), std::string::npos);
  EXPECT_NE(refusal(std::string("a: \0", 4)).find("zero byte"), std::string::npos);
  EXPECT_NE(refusal("a: \xFF\xFE\n").find("not UTF-8"), std::string::npos);
  std::string many = "a: [";
  for (int i = 0; i < 60'000; ++i) many += "1,";
  EXPECT_NE(refusal(many + "]").find("more than 50000 values"), std::string::npos);
}

TEST(Document, RefusesTagsComplexKeysAndSecondDocuments) {
  EXPECT_NE(refusal("a: !!python/object:os.system x\n").find("tags such as"), std::string::npos);
  EXPECT_NE(refusal("? [a, b]\n: 1\n").find("a key has to be a word"), std::string::npos);
  EXPECT_NE(refusal("a: 1\n---\nb: 2\n").find("several YAML documents"), std::string::npos);
  EXPECT_NE(refusal("a: {b: 1\n").find("not valid YAML"), std::string::npos);
}

TEST(Override, AddressesItemsByNameKindAndNumber) {
  Value root = parse_yaml("stages: [{name: one, loss: [{kind: ce}, {kind: kl}]}, {name: two}]", "r.yaml");
  apply_override(root, "stages.one.loss.kl.weight=2");
  apply_override(root, "stages.1.tokens=60k");
  apply_override(root, "stages.two.optim.lr=1e-5");

  const Value& stages = *root.find("stages");
  EXPECT_EQ(stages.items[0].find("loss")->items[1].find("weight")->text, "2");
  EXPECT_EQ(stages.items[1].find("tokens")->text, "60k");
  EXPECT_EQ(stages.items[1].find("optim")->find("lr")->place, "--set stages.two.optim.lr=1e-5");
}

TEST(Override, NamesTheNearestItemWhenThereIsNone) {
  Value root = parse_yaml("stages: [{name: student}]", "r.yaml");
  const auto message = [&](const std::string& assignment) -> std::string {
    try {
      apply_override(root, assignment);
    } catch (const base::UsageError& error) {
      return error.what();
    }
    return "accepted";
  };

  EXPECT_EQ(message("stages.studnet.tokens=1"),
            "--set stages.studnet.tokens=1: 'studnet' is no item of stages; did you mean 'student'?");
  EXPECT_NE(message("stages").find("expected KEY=VALUE"), std::string::npos);
  std::string deep = "a";
  for (int i = 0; i < 30'000; ++i) deep += ".a";
  EXPECT_NE(message(deep + "=1").find("nested deeper than 16 levels"), std::string::npos);
  EXPECT_NE(message("stages..x=1").find("empty part"), std::string::npos);
  EXPECT_NE(message("stages.student.name.x=1").find("is a single value"), std::string::npos);
  EXPECT_NE(message("a=\"x").find("--set a=\"x: not valid YAML"), std::string::npos);
  EXPECT_NE(message("a=*.txt").find("quote a text that begins with *"), std::string::npos)
      << message("a=*.txt");
}

}  // namespace
}  // namespace retort::recipe
