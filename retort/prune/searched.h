#pragma once
// Pruning by one of the searches: candidates of the model are its states, and a state costs its loss
// increase.

#include <functional>

#include "retort/prune/result.h"
#include "retort/prune/setup.h"

namespace retort::prune {

/// Channels are ranked once, by the score of the options on the whole model or by the given scores.  Greedy
/// goes in at most about 72 steps, fewer with a small budget, and evaluates two units or more in each, the
/// best by a guess from single units; where fewer levels lead to the target, it spends its budget on more
/// units and more text in each.  Candidates race over four rungs of the calibration text, a sixteenth, a
/// quarter, half and all of it; `budget_tokens` counts the blocks that a candidate still has, whatever the
/// cache saves.  Uniform units and greedy take the stepwise search of stepwise.h, without budget and rungs.
/// The setup of any other needs a saved file.  With that of an interrupted run the search takes the same
/// path without evaluating again, and one of another search of the same model, text and loss increase is used
/// where candidates agree.  The result is the best finalist by the KL over the whole vocabulary; a candidate
/// whose loss increase is not finite loses, with a warning.  `on_tied` receives the other finalists that the
/// options want, one at a time; one that cannot be made is a warning.
/// Where the setup has a group it is collective, and only rank 0 has a result.  Throws UsageError for an
/// unreachable target, DataError for unusable text, ValidationError for activations that are not finite and
/// for a sliced model whose output differs from the masked one's; MemoryError before the search; StoppedError
/// when the observer asks to stop; StorageError.
PruneResult prune_searched(const PruneSetup& setup,
                           const std::function<void(const model::Weights&)>& on_tied = {});

}  // namespace retort::prune
