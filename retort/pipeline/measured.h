#pragma once
// What evaluate stages have found of a model, as text for its card.

#include <string>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::pipeline {

/// Tables of one model beside the teacher, with intervals; empty where the stage has not measured it.
std::string tables_of(const base::Json& evaluate_result, const std::string& model);

/// Those of all evaluations in the run directory that a model lies in; empty elsewhere.
std::string measured_in_run(const base::Path& model);

}  // namespace retort::pipeline
