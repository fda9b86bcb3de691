#pragma once
// A run directory as the report reads it.  A run may have stopped anywhere: what is absent is empty, what
// cannot be read becomes a note on the page.

#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::report {

struct Stage {
  std::string name;
  std::string kind;
  base::Json recipe;                ///< the stage as the resolved recipe has it, or null
  base::Json result;                ///< stages/<name>.json, or null while it is not finished
  std::vector<base::Json> metrics;  ///< its lines of metrics.jsonl, in order
};

struct RunFiles {
  std::string name;           ///< of the run directory
  std::string recipe_text;    ///< recipe.yaml
  base::Json recipe;          ///< recipe.json
  base::Json provenance;      ///< provenance.json
  std::vector<Stage> stages;  ///< in the order of the recipe
  std::vector<std::string> notes;
};

/// Reads what there is; throws StorageError when `run_directory` is no directory.
RunFiles read_run(const base::Path& run_directory);

}  // namespace retort::report
