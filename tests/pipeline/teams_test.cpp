// How many teams the ranks of several machines make.
#include "retort/pipeline/teams.h"

#include <gtest/gtest.h>

namespace retort::pipeline {
namespace {

const auto kAnyFits = [](const shard::RankCounts&) { return true; };

shard::RankCounts machines(std::int64_t count) {
  return {.all = 2 * count, .of_machine = 2, .least_of_machine = 2, .of_memory = 2};
}

TEST(Teams, DivideTheMachinesEvenly) {
  EXPECT_EQ(count_teams(machines(4), 9, kAnyFits), 4);
  EXPECT_EQ(count_teams(machines(4), 3, kAnyFits), 2);
  EXPECT_EQ(count_teams(machines(3), 2, kAnyFits), 1);
  EXPECT_EQ(count_teams(machines(1), 5, kAnyFits), 1);
  EXPECT_EQ(count_teams({}, 5, kAnyFits), 1);
  auto unequal = machines(4);
  unequal.least_of_machine = 1;
  EXPECT_EQ(count_teams(unequal, 4, kAnyFits), 1);
}

TEST(Teams, AreLargeEnoughForTheirModels) {
  const auto fits = [](const shard::RankCounts& of_team) { return of_team.all >= 4; };
  EXPECT_EQ(count_teams(machines(4), 4, fits), 2);
  EXPECT_EQ(count_teams(machines(2), 2, fits), 1);
  EXPECT_EQ(ranks_of_team(machines(4), 2).all, 4);
  EXPECT_EQ(ranks_of_team(machines(4), 2).of_machine, 2);
}

}  // namespace
}  // namespace retort::pipeline
