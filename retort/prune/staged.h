#pragma once
// What the staged search has to know of a model: which units are blocks, which are channels, and what is
// inactive.

#include <vector>

#include "retort/prune/model_space.h"
#include "retort/search/staged.h"

namespace retort::prune {

/// `scores` of the model of the space say how many channels are inactive; ranking.h has the rule.  Units are
/// told apart by what their highest level does to `whole`, that model.
search::StagedOptions staged_options(const ModelSpace& space, const architecture::Kept& whole,
                                     const std::vector<calibrate::BlockScores>& scores);

}  // namespace retort::prune
