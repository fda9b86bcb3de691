#pragma once
// How a request has tokens drawn.

#include <string>

#include "retort/eval/options.h"
#include "retort/pipeline/pipeline.h"

namespace retort::pipeline {

/// What is asked for, and else what generation_config.json of the model says.  Throws ModelError.
eval::Sampling sampling_of(const SamplingRequest& asked, const std::string& model);

}  // namespace retort::pipeline
