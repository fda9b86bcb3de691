#pragma once
// What can be said about a model directory without running it.

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::cli {

/// Shapes, parameters, dtype, zeros, 2:4 layers, arithmetic, lineage.  Throws ModelError or StorageError.
base::Json describe_model(const base::Path& directory);

}  // namespace retort::cli
