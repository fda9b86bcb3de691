#pragma once
// The text that a stage takes statistics from, and what tells it and the model apart from others.

#include <cstdint>
#include <vector>

#include "retort/base/json.h"
#include "retort/pipeline/context.h"
#include "retort/prune/calibration.h"

namespace retort::pipeline {

/// Every source of the stage is a domain with an equal share of the tokens.  Throws DataError for one with
/// less text than that: what was measured on it would be taken for more.
std::vector<prune::CalibrationDomain> calibration_text(const Context& context, const recipe::Stage& stage,
                                                       const ModelText& text, std::int64_t tokens,
                                                       std::int64_t sequence_length, std::uint64_t seed);

/// What makes text this text and no other, documents and all.
std::string text_fingerprint(const std::vector<prune::CalibrationDomain>& domains);

/// What makes a model this model and no other, wherever it lies: checksums of weights and configuration.
base::Json model_fingerprint(const base::Path& model);

}  // namespace retort::pipeline
