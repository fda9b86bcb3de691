#include "retort/sparsify/damage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/calibrate/sums_over_ranks.h"
#include "retort/model/forward.h"
#include "retort/record/keys.h"

namespace retort::sparsify {

namespace keys = record::keys;

namespace {

Damage damage_from_json(const base::Json& json, const std::vector<std::string>& source_names) {
  Damage damage;
  damage.mean = {json.at(keys::kObjective), json.at(keys::kDeltaLogPerplexity), json.at(keys::kKl)};
  for (std::size_t i = 0; i < source_names.size(); ++i) {
    damage.sources.push_back({.objective = json.at(keys::kDomains).at(source_names[i])});
    if (source_names[i] == json.at(keys::kWorstDomain)) damage.worst_source = i;
  }
  if (const auto& ends = json.at(keys::kInterval); !ends.is_null())
    damage.interval = {ends.at(0), ends.at(1)};
  return damage;
}

}  // namespace

base::Json to_json(const Damage& damage, const std::vector<std::string>& source_names) {
  base::Json json = {{keys::kObjective, damage.mean.objective},
                     {keys::kInterval, eval::to_json(damage.interval)},
                     {keys::kDeltaLogPerplexity, damage.mean.delta_log_perplexity},
                     {keys::kKl, damage.mean.kl},
                     {keys::kWorstDomain, source_names[damage.worst_source]}};
  for (std::size_t i = 0; i < damage.sources.size(); ++i)
    json[keys::kDomains][source_names[i]] = damage.sources[i].objective;
  return json;
}

base::Json to_json(const LayerDamage& layer, const std::vector<std::string>& source_names) {
  auto json = to_json(layer.damage, source_names);
  json[keys::kName] = layer.name;
  json[keys::kSparse] = layer.sparse;
  return json;
}

base::Json to_json(const CumulativeDamage& cumulative, const std::vector<std::string>& source_names) {
  auto json = to_json(cumulative.damage, source_names);
  json[keys::kUpToBlock] = cumulative.up_to_block;
  return json;
}

LayerDamage layer_damage_from_json(const base::Json& json, const std::vector<std::string>& source_names) {
  return {json.at(keys::kName), damage_from_json(json, source_names), json.at(keys::kSparse)};
}

CumulativeDamage cumulative_damage_from_json(const base::Json& json,
                                             const std::vector<std::string>& source_names) {
  return {json.at(keys::kUpToBlock), damage_from_json(json, source_names)};
}

DamageTest::DamageTest(const model::Weights& reference, const std::vector<calibrate::Batch>& batches,
                       const calibrate::ObjectiveWeights& objective, comm::Group& group,
                       calibrate::KlOver over)
    : batches_(batches),
      objective_(objective),
      group_(group),
      scorer_(reference.config, reference.layout, reference.head_on_device()) {
  if (over == calibrate::KlOver::top_k) top_k_.emplace(scorer_, kDamageRows);
  calibrate::pass_blocks(
      reference, batches_, 0, [&](std::size_t i) { return model::embedded(reference, batches_[i].ids_N); },
      [&](std::size_t i, const at::Tensor& hidden_ND) {
        if (top_k_)
          top_k_->keep(batches_[i], hidden_ND);
        else
          reference_ND_.push_back(hidden_ND);
      });
}

Damage DamageTest::measure(const calibrate::Walk& walk) const {
  std::vector<calibrate::DocumentSums> documents;
  calibrate::pass_blocks(
      walk.weights(), batches_, walk.block(), [&](std::size_t i) { return walk.hidden_ND(i); },
      [&](std::size_t i, const at::Tensor& hidden_ND) {
        if (top_k_)
          top_k_->add_documents(i, batches_[i], hidden_ND, documents);
        else
          calibrate::add_documents(batches_[i], scorer_, hidden_ND, scorer_, reference_ND_[i], kDamageRows,
                                   documents);
      });
  calibrate::join_over_ranks(group_, batches_, documents);
  Damage damage{calibrate::evaluation_of(documents, objective_), {}};
  group_.together([&] {
    base::require<base::ValidationError>(std::isfinite(damage.mean.objective),
                                         "sparsify: f on the calibration text is not finite; the model is "
                                         "damaged, evaluate it first.");
  });
  damage.interval = eval::bootstrap_interval(calibrate::objective_terms(documents, objective_));
  return damage;
}

}  // namespace retort::sparsify
