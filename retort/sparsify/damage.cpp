#include "retort/sparsify/damage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/model/forward.h"

namespace retort::sparsify {

base::Json to_json(const Damage& damage, const std::vector<calibrate::SourceText>& sources) {
  base::Json json = {{"objective", damage.mean.objective},
                     {"interval", nullptr},
                     {"delta_log_perplexity", damage.mean.delta_log_perplexity},
                     {"kl", damage.mean.kl},
                     {"worst_domain", sources[damage.worst_source].name}};
  if (damage.interval) json["interval"] = {damage.interval->low, damage.interval->high};
  for (std::size_t i = 0; i < damage.sources.size(); ++i)
    json["domains"][sources[i].name] = damage.sources[i].objective;
  return json;
}

Damage damage_from_json(const base::Json& json, const std::vector<calibrate::SourceText>& sources) {
  Damage damage;
  damage.mean = {json.at("objective"), json.at("delta_log_perplexity"), json.at("kl")};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    damage.sources.push_back({.objective = json.at("domains").at(sources[i].name)});
    if (sources[i].name == json.at("worst_domain")) damage.worst_source = i;
  }
  if (const auto& ends = json.at("interval"); !ends.is_null()) damage.interval = {ends.at(0), ends.at(1)};
  return damage;
}

DamageTest::DamageTest(const model::Weights& reference, const std::vector<calibrate::Batch>& batches,
                       const calibrate::ObjectiveWeights& objective)
    : batches_(batches),
      objective_(objective),
      scorer_(reference.config, reference.layout,
              reference.units[static_cast<std::size_t>(reference.layout.head_unit())]) {
  for (const auto& batch : batches_)
    reference_ND_.push_back(
        model::forward_blocks(reference, model::embedded(reference, batch.ids_N), batch.layout));
}

Damage DamageTest::measure(const calibrate::Walk& walk) const {
  std::vector<calibrate::DocumentSums> documents;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    eval::RowScores rows;
    eval::score_hidden(
        scorer_, model::forward_blocks(walk.weights(), walk.hidden_ND(i), batches_[i].layout, walk.block()),
        &scorer_, reference_ND_[i], batches_[i].targets_N, kDamageRows, &rows);
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
