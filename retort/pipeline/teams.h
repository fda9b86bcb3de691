#pragma once
// Where ranks lie on several machines, teams of machines work on stages of their own at the same time.
// Nothing moves between teams.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "retort/pipeline/context.h"

namespace retort::pipeline {

/// The most teams, `most` at most, that divide the machines evenly and of whose ranks `fits` holds; 1 where
/// machines have unequal numbers of ranks.
std::int64_t count_teams(const shard::RankCounts& ranks, std::int64_t most,
                         const std::function<bool(const shard::RankCounts& of_team)>& fits);

/// Of one of so many teams.
shard::RankCounts ranks_of_team(const shard::RankCounts& ranks, std::int64_t teams);

/// Has each stage done by a team: `act` is given the team's context and the stage's place.  The first rank of
/// a team writes what its stages make.  Throws on all ranks what all ranks of a team threw, else StoppedError
/// where a team was asked to stop; the others stop after their step.  Collective.
void in_teams(const Context& context, std::int64_t teams, const std::vector<std::string>& stages,
              const std::function<void(const Context& of_team, std::size_t place)>& act);

}  // namespace retort::pipeline
