#include "retort/prune/make.h"

#include <cmath>
#include <iomanip>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/compress/compensate.h"
#include "retort/compress/surgery.h"

namespace retort::prune {
namespace {

double allowed_difference(at::ScalarType dtype) {
  return dtype == at::kDouble ? 1e-9 : dtype == at::kFloat ? 1e-4 : 0.05;
}

struct Sliced {
  model::Weights weights;
  double output_difference = 0;  // from the masked model, relative
};

// The sliced model must compute what the masked one did when it was chosen.
Sliced proved_slice(const PruneSetup& setup, const Evaluator& evaluator,
                    const architecture::Kept& candidate) {
  auto weights = compress::sliced(setup.input, candidate);
  const double difference = evaluator.difference(candidate, weights);
  const double allowed = allowed_difference(weights.units.front().scalar_type());
  base::require<base::ValidationError>(difference <= allowed,
                                       "prune: the sliced model's output differs from the masked "
                                       "model's by ",
                                       difference, " of the largest value, allowed are ", allowed,
                                       "; nothing was saved, please report this.");
  return {std::move(weights), difference};
}

// The saved model beside the candidate that was chosen, on the documents that chose it.
Believed believed(const PruneSetup& setup, const Evaluator& evaluator, const MeasuredCandidate& chosen,
                  const model::Weights& weights) {
  const auto& objective = setup.options.objective;
  const auto saved = evaluator.document_sums(weights);
  return {.candidate = calibrate::evaluation_of(chosen.documents, objective).mean.objective,
          .saved = calibrate::evaluation_of(saved, objective).mean.objective,
          .behind = calibrate::difference_of(saved, chosen.documents, objective),
          .saved_interval = eval::bootstrap_interval(calibrate::objective_terms(saved, objective))};
}

// A model to be saved.
struct Made {
  model::Weights weights;
  std::optional<compress::CompensationOutcome> compensation = {};
  Believed believed = {};
};

// Layers fitted one after the other see what the ones before did, and also learn from little text to make up
// for it; each fitted alone learns less.  What chooses candidates decides here too.
void take_fits_alone(const PruneSetup& setup, const Evaluator& evaluator, const MeasuredCandidate& chosen,
                     Made& made) {
  if (!evaluator.after_compensation() || !made.compensation ||
      !(made.believed.candidate < made.believed.saved))
    return;
  auto alone = evaluator.as_compared(chosen.kept);
  const auto again = believed(setup, evaluator, chosen, alone.weights);
  if (!(again.saved < made.believed.saved)) return;
  made.weights = std::move(alone.weights);
  made.believed = again;
  made.compensation->kept = made.compensation->each_alone = true;
  made.compensation->held_out_objective_after = again.saved;
  made.compensation->layers.clear();
  for (auto& name : alone.fitted_layers) made.compensation->layers.push_back({std::move(name), true});
}

Made made_from(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
               const MeasuredCandidate& chosen, model::Weights sliced) {
  Made made{.weights = std::move(sliced)};
  if (setup.options.compensate && setup.options.narrows())
    made.compensation = compress::compensate(
        setup.input, chosen.kept, made.weights, {plan.text.fitted, plan.text.choosing},
        {.objective = setup.options.objective, .hidden_scratch = plan.evaluation.hidden_scratch},
        setup.observer);
  made.believed = believed(setup, evaluator, chosen, made.weights);
  take_fits_alone(setup, evaluator, chosen, made);
  return made;
}

// What was believed beside what was saved.
void say_outcome(const PruneSetup& setup, const PruneReport& report) {
  const auto human = [](std::int64_t count) { return base::human_count(static_cast<double>(count)); };
  const auto& interval = report.interval;
  const auto range =
      interval ? base::join(std::fixed, std::setprecision(4), ", ", interval->low, " to ", interval->high)
               : std::string();
  setup.observer.message(
      record::Level::info,
      base::join("prune: loss increase ", std::fixed, std::setprecision(4), report.evaluation.mean.objective,
                 " nats/token", range, " (", report.believed.saved, " on the documents that chose it, ",
                 report.believed.candidate, " as searched), ",
                 human(architecture::num_parameters(report.output)), " of ",
                 human(architecture::num_parameters(report.input)), " parameters left (target ",
                 report.size.short_text(report.target), "), worst source ",
                 report.sources[report.evaluation.worst_source]));
}

// Sparse layers of the input that stay, though not as sparse ones.
void report_torn_layers(const PruneSetup& setup, const model::Weights& output) {
  const auto& input = setup.input;
  std::size_t expected = 0;
  for (const auto& name : input.lineage.sparse_layers) {
    const auto place = input.layout.find(name);
    const auto block = place ? input.layout.units[place->unit].block_index : -1;
    const auto teacher_block =
        block < 0 ? -1 : input.lineage.kept.blocks[static_cast<std::size_t>(block)].number;
    expected += output.lineage.kept.find(teacher_block) ? 1 : 0;
  }
  if (const auto kept = output.lineage.sparse_layers.size(); kept < expected)
    setup.observer.message(record::Level::warning,
                           base::join("prune: ", expected - kept, " layers were ", input.lineage.pattern,
                                      " sparse and no longer are, because channels between their "
                                      "weights were removed; sparsify after pruning."));
}

}  // namespace

std::string why_worse(const PruneReport& report) {
  const auto& believed = report.believed;
  const auto candidate = believed.candidate, saved = believed.saved;
  const auto& behind = believed.behind;
  // Without an interval a tenth counts: a search that is wrong by more chose by something else than it meant.
  constexpr double kClearly = 0.1;
  const bool is_worse =
      behind.interval ? behind.interval->low > 0 : behind.value > kClearly * std::abs(candidate);
  if (!is_worse) return {};
  const bool refused = report.compensation && !report.compensation->kept;
  return base::join("the search believed a loss increase of ", candidate,
                    " of what it chose, and the saved model has ", saved, " on the same documents; ",
                    refused
                        ? "its compensation was no better there than none, so it was left out: raise "
                          "calibration_tokens."
                        : "layers lost more together than each on its own, which the search does not see: "
                          "prune by less at a time.");
}

std::string why_unseen_lose_more(const PruneReport& report) {
  const auto &chosen_by = report.believed.saved_interval, &unseen = report.interval;
  if (!chosen_by || !unseen) return {};
  // Other documents, so their chances are independent.
  const double more = report.evaluation.mean.objective - report.believed.saved;
  const double half = std::hypot(unseen->high - unseen->low, chosen_by->high - chosen_by->low) / 2;
  if (more <= half) return {};
  return base::join("documents that nothing was chosen by lose ", report.evaluation.mean.objective,
                    ", and those that the choice was made by ", report.believed.saved,
                    ", which is less by more than chance: the choice fits its documents; raise "
                    "calibration_tokens, or give sources whose documents are more alike.");
}

std::string why_not_faster(double seconds_before, double seconds_after) {
  if (seconds_after < seconds_before) return {};
  return base::join(std::fixed, std::setprecision(1), "a forward pass of the smaller model takes ",
                    1000 * seconds_after, " ms, and of the whole one ", 1000 * seconds_before,
                    " ms: on this machine it is not faster; time texts by retort bench generate, or give "
                    "target a latency.");
}

model::Weights make_weights(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                            const MeasuredCandidate& chosen) {
  auto sliced = proved_slice(setup, evaluator, chosen.kept).weights;
  auto made = made_from(setup, plan, evaluator, chosen, std::move(sliced)).weights;
  made.forget_copies();
  return made;
}

PruneResult make_result(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                        const MeasuredCandidate& chosen) {
  auto [weights, difference] = proved_slice(setup, evaluator, chosen.kept);
  report_torn_layers(setup, weights);
  PruneReport report{.input = setup.input.config,
                     .output = weights.config,
                     .size = plan.size,
                     .target = plan.target,
                     .kept = chosen.kept,
                     .sliced_output_difference = difference,
                     .compared_after_compensation = evaluator.after_compensation(),
                     .sources = evaluator.source_names(),
                     .evaluation = {},
                     .memory_planned_bytes = plan.memory_bytes,
                     .memory_unused_bytes =
                         std::max<std::int64_t>(0, plan.candidates_bytes - evaluator.bytes_of_candidates())};
  const Evaluator judge(setup.input, plan.text.judging,
                        {.weights = setup.options.objective,
                         .cache_bytes = 0,
                         .batch_tokens = plan.evaluation.batch_tokens,
                         .hidden_scratch = plan.evaluation.hidden_scratch});
  if (setup.options.compensate)
    report.objective_uncompensated = judge.evaluate_exactly(weights).mean.objective;
  auto made = made_from(setup, plan, evaluator, chosen, std::move(weights));
  report.compensation = std::move(made.compensation);
  report.believed = made.believed;
  const auto judged = judge.document_sums(made.weights);
  report.evaluation = judge.checked(judged);
  made.weights.forget_copies();
  report.interval = eval::bootstrap_interval(calibrate::objective_terms(judged, setup.options.objective));
  say_outcome(setup, report);
  for (const auto& why : {why_worse(report), why_unseen_lose_more(report)})
    if (!why.empty()) setup.observer.message(record::Level::warning, "prune: " + why);
  return {.weights = std::move(made.weights), .report = std::move(report)};
}

eval::SpeedTable speed_of(const PruneSetup& setup, std::vector<architecture::Config> models) {
  models.push_back(setup.input.config);
  return eval::SpeedTable::measured(models, {.context = setup.options.sequence_length,
                                             .dtype = setup.input.units.front().scalar_type(),
                                             .device = setup.input.options().device()});
}

}  // namespace retort::prune
