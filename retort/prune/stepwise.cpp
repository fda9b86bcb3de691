#include "retort/prune/stepwise.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <optional>
#include <string>
#include <utility>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/compress/surgery.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/make.h"
#include "retort/prune/moves.h"
#include "retort/prune/part_scores.h"
#include "retort/prune/plan.h"
#include "retort/prune/saved_evaluations.h"

namespace retort::prune {
namespace {

// References live as long as the search.
struct Stepwise {
  const PruneSetup& setup;
  const ResolvedPlan& plan;
  const Evaluator& evaluator;
  SavedEvaluations& evaluations;
};

// Where the search stands.
struct Current {
  architecture::Kept kept;
  std::int64_t parameters = 0;                  // left
  double objective = 0, highest_objective = 0;  // its loss increase, and what it is at most
};

struct Trial {
  Move move;
  architecture::Kept kept;  // after it
  calibrate::Evaluation evaluation;
  std::int64_t parameters = 0;  // left
  std::int64_t removed = 0;     // by this move
  bool exact = false;           // the KL is over the vocabulary
};

std::string human(std::int64_t count) {
  return base::human_count(static_cast<double>(count));
}

// Measured on the current candidate, if they are not given.
calibrate::UnitScores unit_scores_of(const Stepwise& s, const architecture::Kept& kept) {
  const auto& options = s.setup.options;
  if (!options.removes_parts()) return {};  // nothing is ranked
  if (s.setup.given) return calibrate::unit_scores(*s.setup.given);
  const auto& input = s.setup.input;
  const auto batches =
      calibrate::calibration_batches(s.plan.text.fitted, input.config, input.options().device());
  const auto scores =
      calibrate::measured_scores(compress::sliced(input, kept), batches, s.plan.ranking, &s.setup.observer);
  return in_input(calibrate::unit_scores(scores), input.config, kept);
}

std::int64_t count_inactive(const calibrate::UnitScores& scores, const architecture::Kept& kept) {
  std::int64_t count = 0;
  for (const auto& block : kept.blocks) {
    const auto& channels = scores.channels[static_cast<std::size_t>(block.number)];
    for (const auto channel : block.channels)
      count += calibrate::is_inactive(channels[static_cast<std::size_t>(channel)]) ? 1 : 0;
  }
  return count;
}

Trial measured(const Stepwise& s, const Current& current, const Move& move,
               const calibrate::UnitScores& scores) {
  Trial trial{.move = move, .kept = moved(current.kept, move, scores), .evaluation = {}};
  trial.evaluation = s.evaluations.evaluate(trial.kept, KlOver::top_k);
  trial.parameters = architecture::parameters_of(s.setup.input.config, trial.kept);
  trial.removed = current.parameters - trial.parameters;
  if (!std::isfinite(trial.evaluation.mean.objective))
    s.setup.observer.message(record::Level::warning,
                             base::join("prune: the loss increase of the candidate '", describe(move),
                                        "' is not finite, so it loses against all others."));
  return trial;
}

std::vector<Trial> measured_moves(const Stepwise& s, const Current& current,
                                  const calibrate::UnitScores& scores, std::size_t step) {
  const auto moves = moves_from(current.kept, s.setup.options);
  const auto what = base::join("prune: candidates of step ", step);
  std::vector<Trial> trials;
  for (const auto& move : moves) {
    s.setup.observer.progress(what, std::ssize(trials), std::ssize(moves));
    trials.push_back(measured(s, current, move, scores));
  }
  s.setup.observer.progress(what, std::ssize(moves), std::ssize(moves));
  return trials;
}

void measure_exactly(const Stepwise& s, Current& current, Trial& trial) {
  if (trial.exact) return;
  trial.evaluation = s.evaluations.evaluate(trial.kept, KlOver::vocabulary);
  trial.exact = true;
  // What they all are compared with has to be as exact.
  if (current.highest_objective > current.objective)
    current.highest_objective = current.objective =
        s.evaluations.evaluate(current.kept, KlOver::vocabulary).mean.objective;
}

double score(const Trial& trial, double objective, double before) {
  return (objective - before) / static_cast<double>(trial.removed);
}

double score(const Trial& trial, const Current& current) {
  return score(trial, trial.evaluation.mean.objective, current.objective);
}

double highest(const Stepwise& s, const calibrate::Evaluation& evaluation) {
  return evaluation.mean.objective + s.setup.options.objective.kl * evaluation.mean.kl_gap;
}

// Whatever the loss increase of the current candidate is between its bounds; scores are linear in it.
bool may_cost_less_per_parameter(const Stepwise& s, const Current& current, const Trial& second,
                                 const Trial& first) {
  for (const double before : {current.objective, current.highest_objective})
    if (score(second, second.evaluation.mean.objective, before) <
        score(first, highest(s, first.evaluation), before))
      return true;
  return false;
}

// The first of those that satisfy `admitted` with the least value.  Values are lower bounds: while the first
// two may change places, both are measured exactly.
template <typename Admitted, typename Value, typename MayBeLess>
std::size_t least(const Stepwise& s, Current& current, std::vector<Trial>& trials, Admitted admitted,
                  Value value, MayBeLess may_be_less) {
  for (;;) {
    std::size_t best = trials.size(), second = trials.size();
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (!admitted(trials[i])) continue;
      if (best == trials.size() || value(trials[i]) < value(trials[best]))
        second = std::exchange(best, i);
      else if (second == trials.size() || value(trials[i]) < value(trials[second]))
        second = i;
    }
    base::ensure(best < trials.size(), "a reachable target leaves a move");
    if (trials[best].exact || second == trials.size() || !may_be_less(trials[second], trials[best]))
      return best;
    for (const auto close : {best, second}) measure_exactly(s, current, trials[close]);
  }
}

std::size_t cheapest(const Stepwise& s, Current& current, std::vector<Trial>& trials) {
  return least(
      s, current, trials, [](const Trial&) { return true; },
      [&](const Trial& trial) { return score(trial, current); },
      [&](const Trial& second, const Trial& first) {
        return may_cost_less_per_parameter(s, current, second, first);
      });
}

// Of those that reach the target, with the widest narrowing that does.
std::size_t last(const Stepwise& s, Current& current, std::vector<Trial>& trials,
                 const calibrate::UnitScores& scores) {
  const auto target = s.plan.target_parameters;
  const auto finish = narrowing_to(s.setup.input.config, current.kept, s.setup.options, target);
  const auto known = std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.move.part == finish.part && trial.move.width == finish.width;
  });
  if (finish.width > 0 && !known) trials.push_back(measured(s, current, finish, scores));
  return least(
      s, current, trials, [&](const Trial& trial) { return trial.parameters <= target; },
      [](const Trial& trial) { return trial.evaluation.mean.objective; },
      [&](const Trial& second, const Trial& first) {
        return second.evaluation.mean.objective < highest(s, first.evaluation);
      });
}

MeasuredMove measured_move(const Trial& trial, const Current& before) {
  return {.move = trial.move,
          .evaluation = trial.evaluation,
          .parameters_removed = trial.removed,
          .score = score(trial, before),
          .exact = trial.exact,
          .candidate = architecture::stable_hash(trial.kept)};
}

Decision decision_of(const Trial& chosen, const std::vector<Trial>& trials, const Current& before) {
  Decision decision{.chosen = measured_move(chosen, before), .parameters = chosen.parameters};
  for (const auto& trial : trials) decision.candidates.push_back(measured_move(trial, before));
  return decision;
}

void log_step(const Stepwise& s, const Decision& decision, std::size_t step) {
  const auto& evaluation = decision.chosen.evaluation;
  s.setup.observer.message(
      record::Level::info,
      base::join("prune step ", step, ": ", describe(decision.chosen.move), ": loss increase ", std::fixed,
                 std::setprecision(4), evaluation.mean.objective, " nats/token, ", human(decision.parameters),
                 " of ", human(architecture::num_parameters(s.setup.input.config)),
                 " parameters left (target ", human(s.plan.target_parameters), "), worst source ",
                 s.evaluator.source_names()[evaluation.worst_source]));
}

// Takes `current` to the next candidate.
Decision taken_step(const Stepwise& s, Current& current, std::size_t step) {
  const auto scores = unit_scores_of(s, current.kept);
  auto trials = measured_moves(s, current, scores, step);
  auto best = cheapest(s, current, trials);
  if (trials[best].parameters <= s.plan.target_parameters) best = last(s, current, trials, scores);
  const auto& trial = trials[best];
  base::require<base::ValidationError>(
      std::isfinite(trial.evaluation.mean.objective), "prune: expected a candidate of step ", step,
      " with a finite loss increase, found none of ", trials.size(), "; use float32 or a larger target.");
  auto decision = decision_of(trial, trials, current);
  if (s.setup.options.channels) decision.inactive_channels = count_inactive(scores, current.kept);
  current = {.kept = trial.kept,
             .parameters = trial.parameters,
             .objective = trial.evaluation.mean.objective,
             .highest_objective = highest(s, trial.evaluation)};
  return decision;
}

PruneResult stepwise(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                     SharedEvaluator& shared) {
  SavedEvaluations evaluations(setup, plan, evaluator, shared);
  const Stepwise search{setup, plan, evaluator, evaluations};
  Current current{.kept = architecture::whole(setup.input.config),
                  .parameters = architecture::num_parameters(setup.input.config)};
  std::vector<Decision> decisions;
  while (current.parameters > plan.target_parameters) {
    decisions.push_back(taken_step(search, current, decisions.size() + 1));
    log_step(search, decisions.back(), decisions.size());
  }
  auto result = make_result(setup, plan, evaluator,
                            {current.kept, {}, shared.document_sums(current.kept, KlOver::vocabulary)});
  result.report.course = std::move(decisions);
  result.report.speed = speed_of(setup, {result.weights.config});
  return result;
}

}  // namespace

PruneResult prune_stepwise(const PruneSetup& setup) {
  const auto start = std::chrono::steady_clock::now();
  ResolvedPlan plan;
  comm::agree(setup.group, [&] { plan = resolved(setup, calibrate::kCalibrationBatchTokens); });
  const auto evaluator = evaluator_of_candidates(setup, plan);
  PruneResult result;
  comm::agree(setup.group, [&] {
    SharedEvaluator shared(setup, evaluator);
    if (!setup.leads()) return shared.serve();
    result = stepwise(setup, plan, evaluator, shared);
    result.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  return result;
}

}  // namespace retort::prune
