#pragma once
// What became of one model's scores in another, document by document.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/eval/bootstrap.h"
#include "retort/eval/evaluate.h"

namespace retort::eval {

/// A value of each document of `model` minus that of `other`, with the document's targets, by source.  Throws
/// ModelError when they were not scored on the same documents with the same tokens.
std::vector<std::vector<RatioTerm>> paired_terms(const ModelScores& model, const ModelScores& other,
                                                 const std::function<double(const DocumentScores&)>& value);

/// Change of f = perplexity * NLL + kl * KL(teacher || model), nats per token, mean over sources.
struct Change {
  struct Source {
    std::string name;
    double objective = 0;
  };
  std::string before, model;  ///< names of both
  double objective = 0, nll = 0, kl = 0;
  std::vector<Source> sources;       ///< in the order of the scores
  std::optional<Interval> interval;  ///< 95 %, of the objective, over paired documents

  /// The one whose objective grew most.
  const Source& worst_source() const;
};
/// Throws as paired_terms().
Change change_of_f(const ModelScores& before, const ModelScores& after, double perplexity_weight,
                   double kl_weight);
/// {"before", "model", "objective", "interval", "nll", "kl", "domains", "worst_domain"}
base::Json to_json(const Change& change);

}  // namespace retort::eval
