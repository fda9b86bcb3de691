#include "retort/eval/selection.h"

#include <algorithm>
#include <limits>

#include "retort/base/error.h"
#include "retort/eval/change.h"

namespace retort::eval {
namespace {

double mean_nll(const ModelScores& model) {
  double sum = 0;
  for (const auto& source : model.sources) sum += source.nll();
  return sum / static_cast<double>(model.sources.size());
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
    const auto interval = bootstrap_interval(
        paired_terms(models[i], of_best, [](const DocumentScores& document) { return document.nll; }));
    result[i].behind = result[i].nll - least;
    result[i].interval = interval;
    result[i].tied = result[i].behind == 0 || (interval && interval->low <= 0);
  }
  return result;
}

std::size_t chosen(std::span<const Standing> standings) {
  const auto best = std::ranges::min_element(standings, {}, &Standing::nll);
  return static_cast<std::size_t>(best - standings.begin());
}

}  // namespace retort::eval
