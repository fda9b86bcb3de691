#pragma once
// The recipe of a run that an earlier version of the program may have begun.

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/recipe/recipe.h"

namespace retort::pipeline {

/// The resolved recipe, in the words of the one that the run at `run_directory` keeps, where they mean the
/// same. Keys that the run lacks are left out where they have their defaults, and so are those that are read
/// no more.
base::Json resolved_as_begun(const recipe::Recipe& recipe, const base::Path& run_directory);

}  // namespace retort::pipeline
