#pragma once
// From a candidate to a model of its own: weights sliced, configuration and lineage to match.

#include "retort/model/weights.h"
#include "retort/prune/candidate.h"

namespace retort::prune {

/// A copy without the dropped blocks and channels.  Its lineage is relative to the original teacher; a layer
/// whose 2:4 groups the slicing tore apart is no longer listed as sparse.
model::Weights sliced(const model::Weights& input, const Candidate& candidate);

/// The lineage of sliced(): the candidate's numbers translated to the teacher's.
model::Lineage composed_lineage(const model::Lineage& input, const Candidate& candidate);

}  // namespace retort::prune
