#include "retort/prune/searched.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/prune/finalists.h"
#include "retort/prune/make.h"
#include "retort/prune/plan.h"
#include "retort/prune/saved_lines.h"
#include "retort/prune/saved_search.h"
#include "retort/prune/search_methods.h"
#include "retort/prune/stepwise.h"
#include "retort/record/stopped.h"

namespace retort::prune {
namespace {

using search::Journal;

// Answers the journal.
void measure(const ModelSearch& search, std::span<const search::Task> tasks, const Journal::Tell& tell) {
  const auto& setup = search.setup;
  for (std::size_t first = 0; first < tasks.size(); first += search.shared.tasks_at_a_time()) {
    record::stop_if_asked(setup.observer, "prune", "the candidates measured so far");
    std::vector<SharedEvaluator::Task> together;
    for (const auto& task :
         tasks.subspan(first, std::min(search.shared.tasks_at_a_time(), tasks.size() - first)))
      together.push_back({search.space.candidate(task.state), task.first, task.last});
    const auto costs = search.shared.piece_costs(together);
    for (std::size_t i = 0; i < costs.size(); ++i) tell(first + i, costs[i]);
    setup.observer.progress("prune: tokens searched", static_cast<std::int64_t>(search.journal.spent()),
                            search.plan.budget_tokens);
  }
}

void save(const ModelSearch& search, const Journal::Entry& entry, SavedLines& file) {
  file.append(to_json(entry, search.space));
  if (std::isfinite(entry.objective)) return;
  search.setup.observer.message(record::Level::warning,
                                base::join("prune: the loss increase of candidate ",
                                           architecture::stable_hash(search.space.candidate(entry.state)),
                                           " is not finite, so it loses against all others."));
}

std::int64_t count_not_finite(const Journal& journal) {
  return std::count_if(journal.entries().begin(), journal.entries().end(),
                       [](const auto& entry) { return !std::isfinite(entry.objective); });
}

void require_found(const ModelSearch& search) {
  const bool found = search.journal.best().has_value();
  const auto not_finite = count_not_finite(search.journal);
  base::require<base::ValidationError>(
      found || not_finite == 0, "prune: the loss increase of ", not_finite,
      " candidates is not finite, and no other one reaches the target; use float32 or a larger target.");
  base::require<base::UsageError>(
      found, "prune: search.budget_tokens of ", search.plan.budget_tokens,
      " did not suffice to evaluate one candidate on the whole calibration text of ",
      search.evaluator.tokens(), " tokens; give more, or less calibration text.");
}

SearchCourse course_of(const ModelSearch& search, const NamedStates& starts, ExactMeasurements& measurements,
                       std::vector<Finalist> finalists) {
  const auto& options = search.setup.options;
  SearchCourse course{.method = options.search.method,
                      .units = options.units,
                      .evaluations = search.journal.entries().size(),
                      .evaluations_not_finite = count_not_finite(search.journal),
                      .tokens_spent = search.journal.spent(),
                      .tokens_budget = search.plan.budget_tokens,
                      .curve = search.journal.curve(),
                      .finalists = std::move(finalists)};
  for (const auto& block : search.scores) course.inactive_channels += block.inactive_channels;
  for (const auto& [name, state] : starts) course.starts.push_back({name, measurements.candidate(state)});
  return course;
}

eval::SpeedTable speed_of_finalists(const PruneSetup& setup, const SearchCourse& course) {
  std::vector<architecture::Config> models;
  for (const auto& finalist : course.finalists)
    models.push_back(architecture::config_of(setup.input.config, finalist.candidate.kept));
  return speed_of(setup, std::move(models));
}

// Those that are tied with the first, as many as the options want together with it.
void make_tied(const ModelSearch& search, const SearchCourse& course,
               const std::function<void(const model::Weights&)>& on_tied) {
  std::int64_t number = 1;
  for (const auto& finalist : std::span(course.finalists).subspan(1)) {
    if (number >= search.setup.options.search.finalists) return;
    if (!finalist.tied()) continue;
    ++number;
    try {
      on_tied(make_weights(search.setup, search.plan, search.evaluator, finalist.candidate));
    } catch (const base::ValidationError& error) {
      search.setup.observer.message(record::Level::warning,
                                    base::join("prune: finalist ", number, " is left out: ", error.what()));
    }
  }
}

// Searches, makes the best that was found, and says how that went.
PruneResult searched(const ModelSearch& search, const std::function<void(const model::Weights&)>& on_tied) {
  const auto starts = run_method(search);
  require_found(search);
  ExactMeasurements measurements(search);
  auto course = course_of(search, starts, measurements, find_finalists(search, measurements));
  auto result = make_result(search.setup, search.plan, search.evaluator, course.finalists.front().candidate);
  result.report.speed = speed_of_finalists(search.setup, course);
  if (on_tied) make_tied(search, course, on_tied);
  result.report.course = std::move(course);
  return result;
}

// Where layers go whole nothing is ranked by its inputs, and there is no text for it.
std::vector<calibrate::BlockScores> scores_of(const PruneSetup& setup, const ResolvedPlan& plan) {
  if (setup.given) return *setup.given;
  const auto& text = setup.options.narrows() ? plan.text.fitted : plan.text.choosing;
  return calibrate::measured_scores(
      setup.input, calibrate::calibration_batches(text, setup.input.config, setup.input.options().device()),
      plan.ranking, &setup.observer);
}

void log_outcome(const PruneSetup& setup, const PruneReport& report) {
  const auto& course = std::get<SearchCourse>(report.course);
  setup.observer.message(record::Level::info, base::join("prune: ", base::word(course.method), " search, ",
                                                         course.evaluations, " evaluations"));
}

void warn_of_no_gain(const PruneSetup& setup, const PruneReport& report) {
  const auto& speed = report.speed;
  const auto why = why_not_faster(speed.seconds(report.input), speed.seconds(report.output));
  if (!why.empty()) setup.observer.message(record::Level::warning, "prune: " + why);
}

PruneResult led_search(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                       SharedEvaluator& shared, const std::function<void(const model::Weights&)>& on_tied) {
  const auto scores = scores_of(setup, plan);
  const ModelSpace space(setup.input.config, setup.options, plan.target, calibrate::unit_scores(scores),
                         plan.size);
  SavedLines file(setup.place.saved_file, search_fingerprint(setup, plan, evaluator), setup.observer);
  const auto search = [&](Journal& journal) {
    return ModelSearch{setup, plan, evaluator, shared, scores, space, journal};
  };
  Journal journal(
      space.space(), [&](auto tasks, const auto& tell) { measure(search(journal), tasks, tell); },
      {.budget = static_cast<double>(plan.budget_tokens),
       .rungs = rungs_of(evaluator),
       .charge =
           [&](const search::Task& task) {
             return piece_tokens(evaluator, task.first, task.last) * space.work(task.state);
           },
       .on_entry = [&](const Journal::Entry& entry) { save(search(journal), entry, file); }},
      entries_of(file.earlier(), space));
  return searched(search(journal), on_tied);
}

}  // namespace

PruneResult prune_searched(const PruneSetup& setup,
                           const std::function<void(const model::Weights&)>& on_tied) {
  const auto start = std::chrono::steady_clock::now();
  ResolvedPlan plan;
  const bool steps = setup.options.stepwise();
  const auto size = size_of(setup);
  comm::agree(setup.group, [&] {
    plan = resolved(setup, size, steps ? calibrate::kCalibrationBatchTokens : kSearchBatchTokens);
  });
  const auto evaluator = evaluator_of_candidates(setup, plan);
  PruneResult result;
  comm::agree(setup.group, [&] {
    SharedEvaluator shared(setup, evaluator);
    if (!setup.leads()) return shared.serve();
    result = steps ? prune_stepwise(setup, plan, evaluator, shared)
                   : led_search(setup, plan, evaluator, shared, on_tied);
    result.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!steps) log_outcome(setup, result.report);
    warn_of_no_gain(setup, result.report);
  });
  return result;
}

}  // namespace retort::prune
