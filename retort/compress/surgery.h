#pragma once
// From a candidate to a model of its own: weights sliced, configuration and lineage to match.

#include "retort/architecture/kept.h"
#include "retort/model/weights.h"

namespace retort::compress {

/// A copy without the dropped blocks, heads, channels and hidden features.  With d' of d features left the
/// weights of every norm and eps are multiplied by sqrt(d / d') and d / d', so that a norm over the kept
/// features gives what it gave with the others at 0.  Its lineage is relative to the original teacher; a
/// layer whose 2:4 groups the slicing tore apart is no longer listed as sparse.
model::Weights sliced(const model::Weights& input, const architecture::Kept& candidate);

/// The lineage of sliced(): the candidate's numbers translated to the teacher's.
model::Lineage composed_lineage(const model::Weights& input, const architecture::Kept& candidate);

}  // namespace retort::compress
