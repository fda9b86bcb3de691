#include "retort/recipe/document.h"

#include <gtest/gtest.h>

#include <string>

#include "retort/base/error.h"

namespace retort::recipe {
namespace {

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
