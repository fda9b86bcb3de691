#pragma once
// Stepwise greedy search: from the whole model, take the move whose f grows least per parameter that it
// removes, measure again, and go on until the target is reached.
//
// f is always relative to the input model; the score of a move is (f after - f before) / parameters removed
// by it. The last step: once the cheapest move reaches the target, only moves that reach it compete (with the
// widest narrowing that does, even by several multiples), and the least f wins, because parameters below the
// target are worth nothing. So the result lies at or below the target.

#include <vector>

#include "retort/base/files.h"
#include "retort/calibrate/ranking.h"
#include "retort/calibrate/text.h"
#include "retort/model/weights.h"
#include "retort/prune/options.h"
#include "retort/prune/result.h"
#include "retort/record/observer.h"

namespace retort::prune {

/// Channels are ranked by the score of the options on the calibration text, again after each step; or by
/// `given`, scores of the input's own blocks such as profile_scores().  Throws
/// UsageError for an unreachable target, DataError for unusable text, ValidationError for activations that
/// are not finite and for a sliced model whose output differs from the masked one's; MemoryError before the
/// search; StoppedError when the observer asks to stop.  With the saved file of an interrupted run the same
/// candidates are not evaluated again.
PruneResult prune_stepwise(const model::Weights& input, const std::vector<calibrate::SourceText>& domains,
                           const PruneOptions& options, record::Observer& observer,
                           const std::vector<calibrate::BlockScores>* given = nullptr,
                           const PrunePlace& place = {});

}  // namespace retort::prune
