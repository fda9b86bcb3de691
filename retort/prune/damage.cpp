#include "retort/prune/damage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"

namespace retort::prune {
namespace {

constexpr std::int64_t kChunkRows = 512;

at::Tensor output_of(const model::Weights& weights, const CalibrationBatch& batch, std::int64_t begin,
                     at::Tensor hidden_ND) {
  for (std::int64_t block = begin; block < std::ssize(weights.config.blocks); ++block)
    hidden_ND = model::block_forward(weights_of_block(weights, block), weights.config.rms_norm_eps, hidden_ND,
                                     batch.layout);
  return hidden_ND;
}

}  // namespace

base::Json to_json(const Damage& damage) {
  base::Json json = {{"objective", damage.objective}, {"interval", nullptr}};
  if (damage.interval) json["interval"] = {damage.interval->low, damage.interval->high};
  return json;
}

DamageTest::DamageTest(const model::Weights& reference, const std::vector<CalibrationBatch>& batches,
                       const std::vector<bool>& judged, const ObjectiveWeights& objective)
    : batches_(batches),
      judged_(judged),
      objective_(objective),
      scorer_(reference.config, reference.layout,
              reference.units[static_cast<std::size_t>(reference.layout.head_unit())]) {
  for (std::size_t i = 0; i < batches_.size(); ++i)
    reference_ND_.push_back(
        judged_[i] ? output_of(reference, batches_[i], 0, embedded(reference, batches_[i])) : at::Tensor());
}

// One term for each document, or part of one, that a batch holds.
void DamageTest::add(const CalibrationBatch& batch, const eval::RowScores& rows,
                     std::vector<std::vector<eval::RatioTerm>>& domains) const {
  domains.resize(std::max(domains.size(), batch.domain + 1));
  const auto objective_N = objective_.perplexity * (rows.nll_N - rows.teacher_nll_N).to(at::kDouble) +
                           objective_.kl * rows.kl_N.to(at::kDouble);
  const auto& starts = batch.layout.starts;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto length = starts[i + 1] - starts[i];
    domains[batch.domain].push_back(
        {objective_N.narrow(0, starts[i], length).sum().item<double>(),
         batch.targets_N.narrow(0, starts[i], length).ge(0).sum().item<double>()});
  }
}

Damage DamageTest::measure(const model::Weights& changed, std::int64_t begin,
                           const std::vector<at::Tensor>& hidden_ND) const {
  std::vector<std::vector<eval::RatioTerm>> domains;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    if (!judged_[i]) continue;
    eval::RowScores rows;
    eval::score_hidden(scorer_, output_of(changed, batches_[i], begin, hidden_ND[i]), &scorer_,
                       reference_ND_[i], batches_[i].targets_N, kChunkRows, &rows);
    add(batches_[i], rows, domains);
  }
  std::erase_if(domains, [](const auto& terms) { return terms.empty(); });
  Damage damage{.interval = eval::bootstrap_interval(domains)};
  for (const auto& terms : domains) {
    eval::RatioTerm sum;
    for (const auto& term : terms) sum.numerator += term.numerator, sum.denominator += term.denominator;
    damage.objective += sum.numerator / std::max(sum.denominator, 1.0) / static_cast<double>(domains.size());
  }
  base::require<base::ValidationError>(std::isfinite(damage.objective),
                                       "sparsify: f on the calibration text is not finite; the model is "
                                       "damaged, evaluate it first.");
  return damage;
}

}  // namespace retort::prune
