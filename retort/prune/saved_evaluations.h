#pragma once
// What the stepwise search measures, each candidate once: in memory, and in a file from which an interrupted
// stage goes on.

#include <map>
#include <string>
#include <utility>

#include "retort/prune/evaluator.h"
#include "retort/prune/plan.h"
#include "retort/prune/saved_lines.h"
#include "retort/prune/setup.h"
#include "retort/prune/shared_evaluator.h"

namespace retort::prune {

class SavedEvaluations {
 public:
  /// Reads what an earlier stage of the same model, text and loss increase has saved.  Throws StorageError.
  SavedEvaluations(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                   SharedEvaluator& shared);

  /// Returns what is known, or asks the evaluator and saves it.  Throws StorageError, StoppedError.
  calibrate::Evaluation evaluate(const architecture::Kept& candidate, KlOver over);

 private:
  record::Observer& observer_;
  SharedEvaluator& evaluator_;
  SavedLines file_;
  // By the candidate's hash, and whether the KL is over the vocabulary.
  std::map<std::pair<std::string, bool>, calibrate::Evaluation> known_;
};

}  // namespace retort::prune
