#pragma once
// What every rank has to have alike before a run begins: program, recipe and the models on its machine.

#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/recipe/recipe.h"

namespace retort::pipeline {

/// {"host", "has": {what: checksum}} of this process.  Of files of models their sizes and first MiB count,
/// where headers are: values that differ behind it are not seen.
base::Json start_of_rank(const recipe::Recipe& recipe);

/// A sentence about the first thing that one rank has and rank 0 has not, or has otherwise; empty where all
/// is alike.
std::string difference_of_starts(const std::vector<base::Json>& ranks);

/// Throws UsageError with that sentence on every rank.  Collective.
void require_same_start(const recipe::Recipe& recipe, comm::Group& group);

}  // namespace retort::pipeline
