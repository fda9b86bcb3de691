#pragma once
// Candidates of a search, measured by all ranks of a group: rank 0 asks for them, and the others serve it.
// Every piece of the text of every candidate is measured on one rank, so the values are those of one rank.

#include <optional>
#include <vector>

#include "retort/comm/requests.h"
#include "retort/ops/threads.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/setup.h"

namespace retort::prune {

class SharedEvaluator {
 public:
  /// The evaluator's text and weights are the same on all ranks.  While it lives rank 0 computes with as many
  /// threads as the setup gives its leader, but for its part of what all measure.
  SharedEvaluator(const PruneSetup& setup, const Evaluator& evaluator);

  /// A candidate on the evaluator's pieces from `first` up to `last`.
  struct Task {
    architecture::Kept candidate;
    std::size_t first = 0, last = 0;
  };
  /// Tasks that are measured at a time: enough for all ranks, few enough to be asked to stop between them.
  std::size_t tasks_at_a_time() const;

  /// On rank 0: Evaluator::piece_costs() of each task.
  std::vector<std::vector<double>> piece_costs(const std::vector<Task>& tasks);
  /// On rank 0: what the evaluator's functions of the same name say.
  std::vector<calibrate::DocumentSums> document_sums(const architecture::Kept& candidate, KlOver over);
  calibrate::Evaluation evaluate(const architecture::Kept& candidate, KlOver over);

  /// On the other ranks: measures what rank 0 asks for, until its search has ended.
  void serve() { requests_->serve(); }

 private:
  std::string answer(const std::string& request) const;
  std::string own_piece_costs(const base::Json& tasks) const;
  std::string own_batch_sums(const base::Json& request) const;

  const Evaluator& evaluator_;
  std::int64_t ranks_ = 1, rank_ = 0;
  int threads_of_rank_;
  std::optional<ops::Threads> threads_of_leader_;
  std::optional<comm::Requests> requests_;  // empty: this process alone
};

}  // namespace retort::prune
