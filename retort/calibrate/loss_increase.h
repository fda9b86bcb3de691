#pragma once
// The loss increase by which models are compared, from what each document of the calibration text adds to it.
// So a difference of two models has an interval over documents.
//
// Shape legend: N tokens of a batch.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "retort/base/json.h"
#include "retort/calibrate/options.h"
#include "retort/calibrate/text.h"
#include "retort/eval/bootstrap.h"
#include "retort/eval/score.h"

namespace retort::calibrate {

/// Sums over the targets of a document, in nats.  Its parts in several sequences count as one
/// document.
struct DocumentSums {
  std::size_t source = 0;
  double targets = 0;
  double nll = 0;  ///< loss above that of the model that it is compared with
  double kl = 0;
  double kl_gap = 0;  ///< at most so much is the KL over the vocabulary above `kl`

  /// Adds those of other targets.
  void add(const DocumentSums& other);
};

struct LossIncrease {
  double objective = 0;  ///< f
  double delta_log_perplexity = 0;
  double kl = 0;
  double kl_gap = 0;  ///< of DocumentSums, per target
};

struct Evaluation {
  LossIncrease mean;                  ///< average over sources
  std::vector<LossIncrease> sources;  ///< one for each, in the order of the calibration text
  std::size_t worst_source = 0;       ///< the one with the largest f
};

/// Adds the scores of a batch's tokens, the losses above the other model's; batches come in the order of the
/// text.  Sums are float64.  kl_gap_N may be undefined: 0.
void add_documents(const Batch& batch, const at::Tensor& nll_N, const at::Tensor& kl_N,
                   const at::Tensor& kl_gap_N, std::vector<DocumentSums>& documents);

/// Scores a batch by the outputs of two models' last blocks, over the whole vocabulary, and adds that.
void add_documents(const Batch& batch, const eval::HeadScorer& scorer, const at::Tensor& hidden_ND,
                   const eval::HeadScorer& other, const at::Tensor& other_hidden_ND, std::int64_t chunk_rows,
                   std::vector<DocumentSums>& documents);

/// Adds what add_documents() made of the next part of the text alone, one batch or several; `goes_on`: its
/// first document began before it.
void join_documents(bool goes_on, std::span<const DocumentSums> of_part,
                    std::vector<DocumentSums>& documents);

/// Evaluates each source, then averages with equal weights.  Is not finite where the sums are not.
Evaluation evaluation_of(std::span<const DocumentSums> documents, const ObjectiveWeights& weights);

/// What each document adds to f, by source.
std::vector<std::vector<eval::RatioTerm>> objective_terms(std::span<const DocumentSums> documents,
                                                          const ObjectiveWeights& weights);

/// f of `a` above that of `b`, both of the same documents.
struct LossIncreaseDifference {
  double value = 0;
  std::optional<eval::Interval> interval;  ///< over paired documents
  eval::NoInterval why = {};               ///< where there is none
};
LossIncreaseDifference difference_of(std::span<const DocumentSums> a, std::span<const DocumentSums> b,
                                     const ObjectiveWeights& weights, double level = 0.95);

/// {"objective", "delta_log_perplexity", "kl", "worst_domain", "domains": {name: objective}}
base::Json to_json(const Evaluation& evaluation, const std::vector<std::string>& source_names);

}  // namespace retort::calibrate
