#include "retort/sparsify/damage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"

namespace retort::sparsify {
namespace {

at::Tensor output_of(const model::Weights& weights, const calibrate::Batch& batch, std::int64_t begin,
                     at::Tensor hidden_ND) {
  for (std::int64_t block = begin; block < std::ssize(weights.config.blocks); ++block)
    hidden_ND = model::block_forward(calibrate::weights_of_block(weights, block), weights.config.rms_norm_eps,
                                     hidden_ND, batch.layout);
  return hidden_ND;
}

}  // namespace

base::Json to_json(const Damage& damage, const std::vector<calibrate::SourceText>& domains) {
  base::Json json = {{"objective", damage.mean.objective},
                     {"interval", nullptr},
                     {"delta_log_perplexity", damage.mean.delta_log_perplexity},
                     {"kl", damage.mean.kl},
                     {"worst_domain", domains[damage.worst_domain].name}};
  if (damage.interval) json["interval"] = {damage.interval->low, damage.interval->high};
  for (std::size_t i = 0; i < damage.domains.size(); ++i)
    json["domains"][domains[i].name] = damage.domains[i].objective;
  return json;
}

DamageTest::DamageTest(const model::Weights& reference, const std::vector<calibrate::Batch>& batches,
                       const calibrate::ObjectiveWeights& objective)
    : batches_(batches),
      objective_(objective),
      scorer_(reference.config, reference.layout,
              reference.units[static_cast<std::size_t>(reference.layout.head_unit())]) {
  for (const auto& batch : batches_)
    reference_ND_.push_back(output_of(reference, batch, 0, calibrate::embedded(reference, batch)));
}

Damage DamageTest::measure(const model::Weights& changed, std::int64_t begin,
                           const model::StoredTensors& hidden) const {
  std::vector<calibrate::DocumentSums> documents;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    eval::RowScores rows;
    eval::score_hidden(scorer_, output_of(changed, batches_[i], begin, hidden.get(i)), &scorer_,
                       reference_ND_[i], batches_[i].targets_N, kDamageRows, &rows);
    calibrate::add_documents(batches_[i], rows, documents);
  }
  Damage damage{calibrate::evaluation_of(documents, objective_), {}};
  base::require<base::ValidationError>(std::isfinite(damage.mean.objective),
                                       "sparsify: f on the calibration text is not finite; the model is "
                                       "damaged, evaluate it first.");
  damage.interval = eval::bootstrap_interval(calibrate::objective_terms(documents, objective_));
  return damage;
}

}  // namespace retort::sparsify
