#pragma once
// Says what is wrong with a run before it begins: nothing is made for a run that cannot succeed, and hours of
// work do not end at a mistake that could be seen at the start.

#include <ATen/core/Tensor.h>

#include "retort/pipeline/pipeline.h"
#include "retort/recipe/recipe.h"
#include "retort/record/observer.h"

namespace retort::pipeline {

/// Looks at sources, models, tokenizers, lengths of sequences and, as far as it is known, memory of the
/// stages that are not finished, and warns of what makes figures too good.  Throws UsageError, DataError,
/// ModelError or MemoryError.
void preflight(const recipe::Recipe& recipe, const RunRequest& request, at::ScalarType dtype,
               std::int64_t available_bytes, record::Observer& observer);

}  // namespace retort::pipeline
