#include "retort/prune/finalists.h"

#include <algorithm>
#include <limits>

#include "retort/base/error.h"
#include "retort/eval/bootstrap.h"
#include "retort/record/stopped.h"
#include "retort/search/best_states.h"

namespace retort::prune {
namespace {

constexpr std::int64_t kFinalistsShown = 8;

// The best by the journal, in the order of the exact loss increase.  The journal's are lower bounds, so once
// there are as many as are wanted, none whose bound is above the best can be the first.
std::vector<search::State> best_first(const ModelSearch& search, ExactMeasurements& measurements) {
  const auto wanted = search.setup.options.search.finalists;
  auto states =
      search::best_states(search.journal, static_cast<std::size_t>(std::max(kFinalistsShown, wanted)));
  std::map<search::State, double> objectives;
  double best = std::numeric_limits<double>::infinity();
  const auto cannot_be_first = [&](const search::State& state) {
    return std::ssize(objectives) >= wanted &&
           search.journal.objective(state, search.journal.last_rung()) > best;
  };
  for (const auto& state : states) {
    if (cannot_be_first(state)) break;
    best = std::min(best, objectives[state] = measurements.candidate(state).evaluation.mean.objective);
  }
  states.resize(objectives.size());
  std::stable_sort(states.begin(), states.end(), [&](const search::State& a, const search::State& b) {
    return objectives.at(a) < objectives.at(b);
  });
  return states;
}

}  // namespace

const std::vector<calibrate::DocumentSums>& ExactMeasurements::documents(const search::State& state) {
  const auto [found, added] = documents_.try_emplace(state);
  if (!added) return found->second;
  record::stop_if_asked(search_.setup.observer, "prune", "the candidates measured so far");
  return found->second = search_.shared.document_sums(search_.space.candidate(state), KlOver::vocabulary);
}

MeasuredCandidate ExactMeasurements::candidate(const search::State& state) {
  return {.kept = search_.space.candidate(state),
          .evaluation = calibrate::evaluation_of(documents(state), search_.setup.options.objective),
          .documents = documents(state)};
}

std::vector<Finalist> find_finalists(const ModelSearch& search, ExactMeasurements& measurements) {
  const auto& options = search.setup.options;
  const auto states = best_first(search, measurements);
  const double level = 1 - 0.05 / static_cast<double>(std::max<std::size_t>(states.size(), 2) - 1);
  std::vector<Finalist> finalists;
  for (const auto& state : states)
    finalists.push_back({.candidate = measurements.candidate(state),
                         .searched_objective = search.journal.objective(state, search.journal.last_rung()),
                         .behind = calibrate::difference_of(measurements.documents(state),
                                                            measurements.documents(states.front()),
                                                            options.objective, level)});
  // The first is compared with itself, so only a lack of documents says something.
  const auto& first = finalists.front().behind;
  if (options.search.finalists > 1 && !first.interval && first.why == eval::NoInterval::few_documents)
    search.setup.observer.message(
        record::Level::warning,
        base::join("prune: a source has fewer than ", eval::kLeastDocuments,
                   " documents in the calibration text, too few to tell which candidates are tied: "
                   "of the finalists only the best is kept; raise calibration_tokens."));
  return finalists;
}

}  // namespace retort::prune
