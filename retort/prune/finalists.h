#pragma once
// The best candidates of a search, measured once more as the saved model is.

#include <map>
#include <vector>

#include "retort/prune/result.h"
#include "retort/prune/search_methods.h"

namespace retort::prune {

/// Measures states by document, which the journal does not keep, and with the KL over the vocabulary: of
/// candidates that are close the bound may favour the worse one.  Each is measured once; it is not charged to
/// the search.
class ExactMeasurements {
 public:
  explicit ExactMeasurements(const ModelSearch& search) : search_(search) {}
  /// Throws StorageError, StoppedError.
  const std::vector<calibrate::DocumentSums>& documents(const search::State& state);
  MeasuredCandidate candidate(const search::State& state);

 private:
  const ModelSearch& search_;
  std::map<search::State, std::vector<calibrate::DocumentSums>> documents_;
};

/// Returns the best of the search, eight or as many as the options want, in the order of the exact loss
/// increase.  Intervals are simultaneous: each is as much wider as there are of them.
std::vector<Finalist> find_finalists(const ModelSearch& search, ExactMeasurements& measurements);

}  // namespace retort::prune
