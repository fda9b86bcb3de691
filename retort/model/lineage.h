#pragma once
// Where a model comes from: which blocks, heads, channels, hidden features and 2:4 layers it has relative to
// its original teacher.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::model {

struct Lineage {
  architecture::Kept kept;  ///< what is left of the teacher, in its numbers
  std::vector<std::string>
      sparse_layers;    ///< names of weights that are 2:4 sparse, in this model's numbering
  std::string pattern;  ///< "2:4" when sparse_layers is not empty
  std::int64_t teacher_blocks = 0, teacher_hidden = 0;

  bool identity() const;
};

/// Everything kept.
Lineage whole_lineage(const architecture::Config& config);

base::Json to_json(const Lineage& lineage);
/// Throws ModelError when it does not fit the configuration; `where` names the file.
Lineage lineage_from_json(const base::Json& json, const architecture::Config& config,
                          const std::string& where);

/// The name of the file in a model directory that holds lineage and provenance.
inline constexpr const char* kLineageFile = "retort.json";
/// Of that file.  Format 1 listed every number, where 2 has pairs of first and last; both are read.
inline constexpr int kLineageFormat = 2;
/// Reads it; a directory without one has the whole lineage.
Lineage read_lineage(const base::Path& directory, const architecture::Config& config);

}  // namespace retort::model
