#pragma once
// What the staged search has to know of a model: which units are blocks, which are channels, and what is
// inactive.

#include <vector>

#include "retort/prune/model_space.h"
#include "retort/search/staged.h"

namespace retort::prune {

/// A channel is inactive when its score is below a hundredth of its MLP's median; `scores` as for ModelSpace,
/// empty for blocks without channels.  Units are told apart by what their highest level does to `whole`, the
/// model of the space.
search::StagedOptions staged_options(const ModelSpace& space, const Candidate& whole,
                                     const std::vector<std::vector<double>>& scores);

}  // namespace retort::prune
