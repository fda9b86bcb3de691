#pragma once
// All that a run tells, for people.  A run may have stopped anywhere: what is absent is empty, what cannot be
// read is left out with a note.

#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/record/metrics_line.h"

namespace retort::record {

struct StageContents {
  std::string name;
  std::string kind;
  base::Json recipe;                 ///< the stage as the resolved recipe has it, or null
  base::Json result;                 ///< stages/<name>.json, or null while it is not finished
  std::vector<MetricsLine> metrics;  ///< its lines of metrics.jsonl, in order
};

/// What a model wrote for a source.
struct TextContents {
  std::string source;
  base::Json about;                  ///< what is said beside it: docs/formats/corpus.md
  std::vector<base::Json> examples;  ///< its first texts
};

struct RunContents {
  std::string name;         ///< of the run directory
  std::string recipe_text;  ///< recipe.yaml
  base::Json recipe;
  base::Json provenance;
  std::vector<StageContents> stages;  ///< in the order of the recipe, then what else has results or metrics
  std::vector<TextContents> texts;    ///< by source, sorted
  std::vector<std::string> notes;
};

/// Reads what there is; throws StorageError when `directory` is no directory.
RunContents read_run(const base::Path& directory);

}  // namespace retort::record
