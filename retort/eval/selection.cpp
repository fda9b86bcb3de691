#include "retort/eval/selection.h"

#include <algorithm>
#include <limits>

#include "retort/base/error.h"

namespace retort::eval {
namespace {

constexpr double kSameSpeed = 0.03;  // what timing on a busy machine does not tell apart

double mean_nll(const ModelScores& model) {
  double sum = 0;
  for (const auto& source : model.sources) sum += source.nll();
  return sum / static_cast<double>(model.sources.size());
}

// NLL of a model above that of another, a term for each document of each source.
std::vector<std::vector<RatioTerm>> differences(const ModelScores& model, const ModelScores& other) {
  std::vector<std::vector<RatioTerm>> terms(model.sources.size());
  for (std::size_t source = 0; source < model.sources.size(); ++source) {
    const auto &ours = model.sources[source].documents, &theirs = other.sources[source].documents;
    const bool same =
        std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), [](const auto& a, const auto& b) {
          return a.document.number == b.document.number && a.document.hash == b.document.hash &&
                 a.targets == b.targets;
        });
    base::require<base::ModelError>(same, model.name, " and ", other.name,
                                    ": expected the same documents and tokens, found other tokens of '",
                                    model.sources[source].name, "'; compare models with the same tokenizer.");
    for (std::size_t i = 0; i < ours.size(); ++i)
      terms[source].push_back({ours[i].nll - theirs[i].nll, static_cast<double>(ours[i].targets)});
  }
  return terms;
}

}  // namespace

std::vector<Standing> standings(std::span<const ModelScores> models) {
  std::vector<Standing> result;
  for (const auto& model : models) result.push_back({.nll = mean_nll(model), .interval = {}});
  const auto best = std::min_element(result.begin(), result.end(),
                                     [](const auto& a, const auto& b) { return a.nll < b.nll; });
  const double least = best->nll;
  const auto& of_best = models[static_cast<std::size_t>(best - result.begin())];
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto interval = bootstrap_interval(differences(models[i], of_best));
    base::require<base::DataError>(
        interval.has_value(), models[i].name,
        ": expected at least two documents of every source, found fewer; score more "
        "tokens.");
    result[i].behind = result[i].nll - least;
    result[i].interval = *interval;
    result[i].tied = result[i].behind == 0 || interval->low <= 0;
  }
  return result;
}

std::size_t chosen(std::span<const Standing> standings, std::span<const double> seconds) {
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < standings.size(); ++i)
    if (standings[i].tied) fastest = std::min(fastest, seconds[i]);
  std::size_t best = standings.size();
  for (std::size_t i = 0; i < standings.size(); ++i)
    if (standings[i].tied && seconds[i] <= fastest * (1 + kSameSpeed) &&
        (best == standings.size() || standings[i].nll < standings[best].nll))
      best = i;
  base::ensure(best < standings.size(), "the best is tied with itself");
  return best;
}

}  // namespace retort::eval
