#pragma once
// The learning rate of a step.

#include <cstdint>

#include "retort/optim/options.h"

namespace retort::optim {

/// Factor on lr at `step` (from 1) of `steps`: linear warm-up to 1, then cosine to final_lr_fraction, or
/// constant 1.
double schedule_factor(const OptimOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace retort::optim
