#pragma once
// Scores of the parts of a model that a prune stage may remove.

#include "retort/architecture/config.h"
#include "retort/architecture/kept.h"
#include "retort/calibrate/ranking.h"

namespace retort::prune {

/// Scores of sliced(input, candidate) at the places that its parts have in `input`; -infinity for what is
/// gone.
calibrate::UnitScores in_input(const calibrate::UnitScores& scores, const architecture::Config& input,
                               const architecture::Kept& candidate);

}  // namespace retort::prune
