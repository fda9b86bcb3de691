#pragma once
// Stepwise greedy search over blocks that stay alike: search::greedy over a model space, between bounds.
//
// From the whole model it takes the step whose loss increase grows least per parameter that it removes, ranks
// what is left again, measures again, and goes on until the target is reached.  The loss increase is always
// relative to the input.  Once the cheapest step reaches the target, only steps that reach it compete, with
// the widest narrowing that does, even by several multiples, and the least loss increase wins: parameters
// below the target are worth nothing.  So the result lies at or below the target.

#include "retort/prune/result.h"
#include "retort/prune/setup.h"

namespace retort::prune {

/// Channels are ranked by the score of the options on the calibration text, again after each step, where no
/// scores are given.  Throws UsageError for an unreachable target, DataError for unusable text,
/// ValidationError for activations that are not finite and for a sliced model whose output differs from the
/// masked one's; MemoryError before the search; StoppedError when the observer asks to stop.  With the saved
/// file of an interrupted run the same candidates are not evaluated again.  Where the setup has a group it is
/// collective, and only rank 0 has a result.
PruneResult prune_stepwise(const PruneSetup& setup);

}  // namespace retort::prune
