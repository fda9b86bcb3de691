#include "retort/prune/result.h"

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/compress/compensate.h"
#include "retort/compress/surgery.h"
#include "retort/prune/plan.h"

namespace retort::prune {
namespace {

// The sliced model must compute what the masked one did when it was chosen.
double proved(const Evaluator& evaluator, const architecture::Kept& candidate,
              const model::Weights& weights) {
  const double difference = evaluator.difference(candidate, weights);
  const double allowed = weights.units.front().scalar_type() == at::kDouble  ? 1e-9
                         : weights.units.front().scalar_type() == at::kFloat ? 1e-4
                                                                             : 0.05;
  base::require<base::ValidationError>(difference <= allowed,
                                       "prune: the sliced model's output differs from the masked "
                                       "model's by ",
                                       difference, " of the largest value, allowed are ", allowed,
                                       "; nothing was saved, please report this.");
  return difference;
}

void report_torn_layers(const model::Weights& input, const model::Weights& output,
                        record::Observer& observer) {
  std::size_t expected = 0;
  for (const auto& name : input.lineage.sparse_layers) {
    const auto place = input.layout.find(name);
    const auto block = place ? input.layout.units[place->unit].block_index : -1;
    const auto teacher_block =
        block < 0 ? -1 : input.lineage.kept.blocks[static_cast<std::size_t>(block)].number;
    expected += output.lineage.kept.find(teacher_block) ? 1 : 0;
  }
  if (const auto kept = output.lineage.sparse_layers.size(); kept < expected)
    observer.message(record::Level::warning,
                     base::join("prune: ", expected - kept, " layers were ", input.lineage.pattern,
                                " sparse and no longer are, because channels between their "
                                "weights were removed; sparsify after pruning."));
}

compress::CompensationOptions compensation_options(const Evaluator& evaluator, const PruneOptions& options) {
  return {.objective = options.objective, .hidden_scratch = evaluator.hidden_scratch()};
}

}  // namespace

PlannedEvaluation planned_evaluation(const model::Weights& input,
                                     const std::vector<calibrate::SourceText>& domains,
                                     const PruneOptions& options, const PrunePlace& place,
                                     std::int64_t batch_tokens, record::Observer& observer) {
  std::int64_t text = 0, longest = 0;
  for (const auto& batch : calibrate::batch_places(domains, input.config.vocab_size, batch_tokens)) {
    text += batch.tokens;
    longest = std::max(longest, batch.tokens);
  }
  const auto item = input.item_bytes();
  const auto scratch = place.saved_file.parent_path();
  const auto [states, plan] =
      plan_prune_within(place.memory, !scratch.empty(), input.config, item, text, longest, options);
  observer.message(record::Level::info, "prune: memory, at most:\n" + shard::describe(plan));
  if (place.memory > 0) shard::require_fits(plan, place.memory);
  return {.options = {.weights = options.objective,
                      .cache_bytes = states.cache_bytes,
                      .batch_tokens = batch_tokens,
                      .after_compensation = wants_after_compensation(options),
                      .scratch = scratch,
                      .hidden_scratch = states.on_disk ? scratch : base::Path(),
                      .observer = &observer},
          .memory_bytes = plan.total_bytes()};
}

model::Weights make_weights(const model::Weights& input, const Evaluator& evaluator,
                            const architecture::Kept& candidate,
                            const std::vector<calibrate::SourceText>& domains, const PruneOptions& options,
                            record::Observer& observer) {
  auto weights = compress::sliced(input, candidate);
  (void)proved(evaluator, candidate, weights);
  if (options.compensate)
    compress::compensate(input, candidate, weights, domains, compensation_options(evaluator, options),
                         observer);
  return weights;
}

PruneResult make_result(const model::Weights& input, const Evaluator& evaluator,
                        const architecture::Kept& candidate,
                        const std::vector<calibrate::SourceText>& domains, const PruneOptions& options,
                        record::Observer& observer) {
  auto weights = compress::sliced(input, candidate);
  const double difference = proved(evaluator, candidate, weights);
  report_torn_layers(input, weights, observer);
  base::Json report = {{"kind", "prune"},
                       {"parameters_before", architecture::num_parameters(input.config)},
                       {"parameters_after", architecture::num_parameters(weights.config)},
                       {"blocks_before", input.config.blocks.size()},
                       {"width_before", mlp_width(input.config.blocks.front())},
                       {"kv_groups_before", kv_groups(input.config.blocks.front())},
                       {"hidden_before", input.config.hidden_size},
                       {"kept", architecture::to_json(candidate)},
                       {"sliced_output_difference", difference},
                       {"compared_after_compensation", evaluator.after_compensation()}};
  const auto costs = [&] { return to_json(evaluator.evaluate_exactly(weights), evaluator.domain_names()); };
  report.update(costs());
  if (options.compensate) {
    report["objective_uncompensated"] = report.at("objective");
    const auto compensated = compress::compensate(input, candidate, weights, domains,
                                                  compensation_options(evaluator, options), observer);
    report["compensation"] = compensated ? to_json(*compensated) : base::Json(nullptr);
    report.update(costs());
  }
  return {.weights = std::move(weights), .report = std::move(report)};
}

eval::SpeedTable report_costs(base::Json& report, const model::Weights& input,
                              std::vector<architecture::Config> results, std::int64_t sequence_length) {
  results.push_back(input.config);
  const auto speed = eval::SpeedTable::measured(results, {.context = sequence_length,
                                                          .dtype = input.units.front().scalar_type(),
                                                          .device = input.units.front().device()});
  report["speed"] = speed.to_json();
  report["cost"] = speed.cost(results.front());
  report["cost_before"] = speed.cost(input.config);
  return speed;
}

}  // namespace retort::prune
