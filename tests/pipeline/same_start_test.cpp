// What ranks are told where one has another program, recipe or model.
#include "retort/pipeline/same_start.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "pipeline/project.h"
#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/ranks.h"

namespace retort::pipeline {
namespace {

using test::Project;

base::Json rank_with(const std::string& host, base::Json has) {
  return {{"host", host}, {"has", std::move(has)}};
}

TEST(SameStart, SaysNothingOfRanksThatAreAlike) {
  const auto rank = rank_with("a", {{"the program", "1"}, {"m/config.json", "2"}});
  EXPECT_EQ(difference_of_starts({rank}), "");
  EXPECT_EQ(difference_of_starts({rank, rank_with("b", rank.at("has")), rank}), "");
}

TEST(SameStart, NamesTheFirstRankThatDiffersAndWhatItHas) {
  const auto first = rank_with("a", {{"the program", "1"}, {"m/model.safetensors", "20 bytes, 3"}});
  EXPECT_EQ(
      difference_of_starts(
          {first, first, rank_with("b", {{"the program", "1"}, {"m/model.safetensors", "20 bytes, 4"}})}),
      "m/model.safetensors: rank 2 on b has 20 bytes, 4, expected what rank 0 on a has, 20 bytes, 3; give "
      "all machines the same.");
  EXPECT_SAYS(difference_of_starts({first, rank_with("b", {{"the program", "1"}})}),
              "m/model.safetensors: rank 1 on b has none");
  auto more = first;
  more["has"]["m/tokenizer.json"] = "5 bytes, 6";
  EXPECT_SAYS(difference_of_starts({first, more}), "m/tokenizer.json: rank 1 on a has 5 bytes, 6");
}

TEST(SameStart, SeesTheProgramTheRecipeAndFilesThatModelsAreReadFrom) {
  const Project project;
  const auto recipe = project.recipe_of({test::kFinetune});
  const auto before = start_of_rank(recipe);
  EXPECT_EQ(start_of_rank(recipe), before);
  const auto& has = before.at("has");
  EXPECT_TRUE(has.contains("the program") && has.contains("the recipe"));
  EXPECT_TRUE(has.contains("pipeline_test"));  // the code itself, which users have in a library
  EXPECT_TRUE(has.contains("libtorch_cpu.so"));
  const auto model = project.path("model");
  EXPECT_TRUE(has.contains((model / "config.json").string()));

  std::ofstream(model / "README.md") << "notes of this machine";
  std::ofstream(model / "trainer_state.json") << "{}";
  EXPECT_EQ(start_of_rank(recipe), before);
  std::ofstream(model / "config.json", std::ios::app) << " ";
  EXPECT_SAYS(difference_of_starts({before, start_of_rank(recipe)}), "config.json: rank 1 on ");
  // Another model of the same shape: behind the header all values differ.
  const auto write_shard = [&](char value) {
    std::ofstream(model / "shard.safetensors", std::ios::binary)
        << std::string(1 << 20, '0') << std::string(5 << 20, value);
  };
  write_shard('1');
  const auto one = start_of_rank(recipe);
  write_shard('2');
  EXPECT_SAYS(difference_of_starts({one, start_of_rank(recipe)}), "shard.safetensors: rank 1 on ");
  auto other = recipe;
  other.seed = 5;
  EXPECT_SAYS(difference_of_starts({start_of_rank(recipe), start_of_rank(other)}), "the recipe: rank 1 on ");
}

TEST(SameStart, IsRefusedOnEveryRank) {
  const Project project;
  test::on_ranks(3, [&](comm::Group& group) {
    auto recipe = project.recipe_of({test::kFinetune});
    require_same_start(recipe, group);
    if (group.rank() == 2) recipe.seed = 7;
    EXPECT_SAYS(test::message_of<base::UsageError>([&] { require_same_start(recipe, group); }),
                "the recipe: rank 2 on ");
    EXPECT_TRUE(group.failed_together());
  });
}

// An old one of the same name is there.
TEST(SameDirectory, IsTheOneThatRank0Sees) {
  const Project project;
  ::setenv("RETORT_PATIENCE_SECONDS", "0.3", 1);
  for (const auto* name : {"run", "old"}) std::filesystem::create_directory(project.path(name));
  test::on_ranks(3, [&](comm::Group& group) {
    require_same_directory(project.path("run"), group);
    const auto seen = project.path(group.rank() == 2 ? "old" : "run");
    const auto said = test::message_of<base::StorageError>([&] { require_same_directory(seen, group); });
    EXPECT_SAYS(said, "rank 2 on ");
    EXPECT_SAYS(said, "is not the one that rank 0 has opened; use a directory that all machines share.");
    EXPECT_TRUE(group.failed_together());
  });
  ::unsetenv("RETORT_PATIENCE_SECONDS");
  EXPECT_TRUE(std::filesystem::is_empty(project.path("run")));
}

}  // namespace
}  // namespace retort::pipeline
