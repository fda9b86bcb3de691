#pragma once
// What every rank has to have alike before a run begins: program, recipe, the models on its machine, and then
// the run directory.

#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/recipe/recipe.h"

namespace retort::pipeline {

/// {"host", "has": {what: checksum}} of this process.  Of torch and of files of models their sizes, the first
/// MiB, where headers are, and 64 samples of 4 KiB count: a few values that differ between these are not
/// seen.
base::Json start_of_rank(const recipe::Recipe& recipe);

/// A sentence about the first thing that one rank has and rank 0 has not, or has otherwise; empty where all
/// is alike.
std::string difference_of_starts(const std::vector<base::Json>& ranks);

/// Throws UsageError with that sentence on every rank.  Collective.
void require_same_start(const recipe::Recipe& recipe, comm::Group& group);

/// Throws StorageError on every rank where one does not see what rank 0 makes in the directory.  A file
/// system may show it late: it is looked for as long as a rank is waited for.  Collective.
void require_same_directory(const base::Path& directory, comm::Group& group);

}  // namespace retort::pipeline
