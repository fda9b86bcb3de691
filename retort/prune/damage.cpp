#include "retort/prune/damage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"

namespace retort::prune {
namespace {

at::Tensor output_of(const model::Weights& weights, const CalibrationBatch& batch, std::int64_t begin,
                     at::Tensor hidden_ND) {
  for (std::int64_t block = begin; block < std::ssize(weights.config.blocks); ++block)
    hidden_ND = model::block_forward(weights_of_block(weights, block), weights.config.rms_norm_eps, hidden_ND,
                                     batch.layout);
  return hidden_ND;
}

}  // namespace

struct DamageTest::Document {
  double nll = 0, kl = 0, targets = 0;  // nll above the reference's
};

base::Json to_json(const Damage& damage, const std::vector<CalibrationDomain>& domains) {
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

DamageTest::DamageTest(const model::Weights& reference, const std::vector<CalibrationBatch>& batches,
                       const ObjectiveWeights& objective)
    : batches_(batches),
      objective_(objective),
      scorer_(reference.config, reference.layout,
              reference.units[static_cast<std::size_t>(reference.layout.head_unit())]) {
  for (const auto& batch : batches_)
    reference_ND_.push_back(output_of(reference, batch, 0, embedded(reference, batch)));
}

double DamageTest::objective(double nll, double kl) const {
  return objective_.perplexity * nll + objective_.kl * kl;
}

// A document that several sequences hold parts of is one.
void DamageTest::add(const CalibrationBatch& batch, const eval::RowScores& rows,
                     std::vector<std::vector<Document>>& domains) const {
  domains.resize(std::max(domains.size(), batch.domain + 1));
  auto& documents = domains[batch.domain];
  const auto nll_N = rows.nll_N.to(at::kDouble) - rows.teacher_nll_N.to(at::kDouble);
  const auto kl_N = rows.kl_N.to(at::kDouble), counts_N = batch.targets_N.ge(0).to(at::kDouble);
  const auto& starts = batch.layout.starts;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto sum = [&](const at::Tensor& of_N) {
      return of_N.narrow(0, starts[i], starts[i + 1] - starts[i]).sum().item<double>();
    };
    if (!batch.goes_on[i] || documents.empty()) documents.emplace_back();
    documents.back().nll += sum(nll_N);
    documents.back().kl += sum(kl_N);
    documents.back().targets += sum(counts_N);
  }
}

Damage DamageTest::measure(const model::Weights& changed, std::int64_t begin,
                           const StoredTensors& hidden) const {
  std::vector<std::vector<Document>> domains;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    eval::RowScores rows;
    eval::score_hidden(scorer_, output_of(changed, batches_[i], begin, hidden.get(i)), &scorer_,
                       reference_ND_[i], batches_[i].targets_N, kDamageRows, &rows);
    add(batches_[i], rows, domains);
  }
  Damage damage;
  std::vector<std::vector<eval::RatioTerm>> terms(domains.size());
  const auto share = 1 / static_cast<double>(domains.size());
  for (std::size_t domain = 0; domain < domains.size(); ++domain) {
    Document sum;
    for (const auto& [nll, kl, targets] : domains[domain]) {
      sum.nll += nll, sum.kl += kl, sum.targets += targets;
      terms[domain].push_back({objective(nll, kl), targets});
    }
    const auto targets = std::max(sum.targets, 1.0);
    const Cost cost{objective(sum.nll, sum.kl) / targets, sum.nll / targets, sum.kl / targets};
    damage.mean.objective += share * cost.objective;
    damage.mean.delta_log_perplexity += share * cost.delta_log_perplexity;
    damage.mean.kl += share * cost.kl;
    damage.domains.push_back(cost);
    if (cost.objective > damage.domains[damage.worst_domain].objective) damage.worst_domain = domain;
  }
  base::require<base::ValidationError>(std::isfinite(damage.mean.objective),
                                       "sparsify: f on the calibration text is not finite; the model is "
                                       "damaged, evaluate it first.");
  damage.interval = eval::bootstrap_interval(terms);
  return damage;
}

}  // namespace retort::prune
