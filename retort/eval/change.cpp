#include "retort/eval/change.h"

#include <algorithm>
#include <numeric>

#include "retort/base/error.h"
#include "retort/record/keys.h"

namespace retort::eval {
namespace {

namespace keys = record::keys;

std::vector<double> by_source(const std::vector<std::vector<RatioTerm>>& sources) {
  std::vector<double> values;
  for (const auto& terms : sources) {
    RatioTerm total;
    for (const auto& term : terms) {
      total.numerator += term.numerator;
      total.denominator += term.denominator;
    }
    values.push_back(total.numerator / std::max(total.denominator, 1.0));
  }
  return values;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
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
    return mean(
        by_source(paired_terms(after, before, [&](const auto& document) { return document.*value; })));
  };
  const auto of_sources = by_source(objective);
  Change result{.before = before.name,
                .model = after.name,
                .objective = mean(of_sources),
                .nll = change(&DocumentScores::nll),
                .kl = change(&DocumentScores::kl),
                .sources = {},
                .interval = bootstrap_interval(objective)};
  for (std::size_t i = 0; i < of_sources.size(); ++i)
    result.sources.push_back({after.sources[i].name, of_sources[i]});
  return result;
}

const Change::Source& Change::worst_source() const {
  base::ensure(!sources.empty(), "a change was measured on a source");
  return *std::max_element(sources.begin(), sources.end(),
                           [](const auto& a, const auto& b) { return a.objective < b.objective; });
}

base::Json to_json(const Change& change) {
  base::Json json = {{keys::kBefore, change.before},
                     {keys::kModel, change.model},
                     {keys::kObjective, change.objective},
                     {keys::kInterval, to_json(change.interval)},
                     {keys::kNll, change.nll},
                     {keys::kKl, change.kl}};
  for (const auto& source : change.sources) json[keys::kDomains][source.name] = source.objective;
  json[keys::kWorstDomain] = change.worst_source().name;
  return json;
}

}  // namespace retort::eval
