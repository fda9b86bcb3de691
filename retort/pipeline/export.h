#pragma once
// A model in another program's form, with proof.

#include "retort/base/json.h"
#include "retort/pipeline/pipeline.h"

namespace retort::pipeline {

/// export_model() where `out` may be replaced.
base::Json export_to(const ExportRequest& request, record::Observer& observer);

}  // namespace retort::pipeline
