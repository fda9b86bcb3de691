#pragma once
// Stepwise greedy search over blocks that stay alike: search::greedy over a model space, between bounds.
//
// From the whole model it takes the step whose loss increase grows least per parameter that it removes, ranks
// what is left again, measures again, and goes on until the target is reached.  The loss increase is always
// relative to the input.  Once the cheapest step reaches the target, only steps that reach it compete, with
// the widest narrowing that does, even by several multiples, and the least loss increase wins: parameters
// below the target are worth nothing.  So the result lies at or below the target.

#include "retort/prune/plan.h"
#include "retort/prune/result.h"
#include "retort/prune/setup.h"
#include "retort/prune/shared_evaluator.h"

namespace retort::prune {

/// Channels are ranked by the score of the options on the calibration text, again after each step, where no
/// scores are given.  With the saved file of an interrupted run the same candidates are not evaluated again.
/// On rank 0; the caller adds the time.  Throws as prune_searched().
PruneResult prune_stepwise(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                           SharedEvaluator& shared);

}  // namespace retort::prune
