#pragma once
// The searches over a model space, each as wide as its budget allows.

#include <string>
#include <utility>
#include <vector>

#include "retort/prune/evaluator.h"
#include "retort/prune/model_space.h"
#include "retort/prune/plan.h"
#include "retort/prune/setup.h"
#include "retort/prune/shared_evaluator.h"
#include "retort/search/journal.h"

namespace retort::prune {

/// A search of candidates of a model; references live as long as the search.
struct ModelSearch {
  const PruneSetup& setup;
  const ResolvedPlan& plan;
  const Evaluator& evaluator;
  SharedEvaluator& shared;                            ///< measures with it
  const std::vector<calibrate::BlockScores>& scores;  ///< of the blocks of the input
  const ModelSpace& space;
  search::Journal& journal;
};

/// Tokens of the evaluator's pieces from `first` up to `last`.
double piece_tokens(const Evaluator& evaluator, std::size_t first, std::size_t last);

using NamedStates = std::vector<std::pair<std::string, search::State>>;

/// Runs the method of the options to its end, or to the end of its budget.  Returns the states that it began
/// from.
NamedStates run_method(const ModelSearch& search);

}  // namespace retort::prune
