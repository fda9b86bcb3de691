#include "retort/eval/change.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::eval {
namespace {

double mean(const std::vector<std::vector<RatioTerm>>& sources) {
  double sum = 0;
  for (const auto& terms : sources) {
    RatioTerm total;
    for (const auto& term : terms) {
      total.numerator += term.numerator;
      total.denominator += term.denominator;
    }
    sum += total.numerator / std::max(total.denominator, 1.0);
  }
  return sum / static_cast<double>(sources.size());
}

}  // namespace

std::vector<std::vector<RatioTerm>> paired_terms(const ModelScores& model, const ModelScores& other,
                                                 const std::function<double(const DocumentScores&)>& value) {
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
      terms[source].push_back({value(ours[i]) - value(theirs[i]), static_cast<double>(ours[i].targets)});
  }
  return terms;
}

Change change_of_f(const ModelScores& before, const ModelScores& after, double perplexity_weight,
                   double kl_weight) {
  const auto objective = paired_terms(after, before, [&](const DocumentScores& document) {
    return perplexity_weight * document.nll + kl_weight * document.kl;
  });
  const auto change = [&](double DocumentScores::*value) {
    return mean(paired_terms(after, before, [&](const auto& document) { return document.*value; }));
  };
  return {.objective = mean(objective),
          .nll = change(&DocumentScores::nll),
          .kl = change(&DocumentScores::kl),
          .interval = bootstrap_interval(objective)};
}

base::Json to_json(const Change& change, const std::string& before, const std::string& model) {
  base::Json json = {{"before", before},    {"model", model},    {"objective", change.objective},
                     {"interval", nullptr}, {"nll", change.nll}, {"kl", change.kl}};
  if (change.interval) json["interval"] = {change.interval->low, change.interval->high};
  return json;
}

}  // namespace retort::eval
