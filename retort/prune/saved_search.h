#pragma once
// Evaluations of a search on disk, so that an interrupted one goes on, and another one of the same model,
// text and loss increase takes what it has in common with it.

#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/model_space.h"
#include "retort/prune/plan.h"
#include "retort/prune/setup.h"
#include "retort/search/journal.h"

namespace retort::prune {

/// Four rungs of the calibration text: a sixteenth, a quarter, half and all of it, in each at least one batch
/// of each source.  Short texts have fewer of them.
std::vector<search::Rung> rungs_of(const Evaluator& evaluator);

/// Everything that the loss increase of a candidate on a rung depends on.
std::string search_fingerprint(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator);

/// A line of the saved file.
base::Json to_json(const search::Journal::Entry& entry, const ModelSpace& space);

/// The entries of earlier lines whose states still are the candidates that they were.  Other options, or
/// scores that differ between machines where two are close, make others of them.
std::vector<search::Journal::Entry> entries_of(const std::vector<base::Json>& lines, const ModelSpace& space);

}  // namespace retort::prune
