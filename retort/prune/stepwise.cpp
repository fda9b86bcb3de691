#include "retort/prune/stepwise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/compress/surgery.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/moves.h"
#include "retort/prune/part_scores.h"
#include "retort/record/saved_lines.h"
#include "retort/record/stopped.h"

namespace retort::prune {
namespace {

std::string human(std::int64_t count) {
  return base::human_count(static_cast<double>(count));
}

struct Trial {
  Move move;
  architecture::Kept candidate;
  calibrate::Evaluation evaluation;
  std::int64_t parameters = 0;  // left
  std::int64_t removed = 0;     // by this move
  bool exact = false;           // the KL is over the vocabulary
};

base::Json to_json(const Move& move) {
  if (!move.part) return {{"action", "drop_block"}, {"block", move.block}};
  return {{"action", move.part->action}, {"width", move.width}};
}

base::Json to_json(const Trial& trial, double score, const std::vector<std::string>& domains) {
  auto json = to_json(trial.move);
  json["objective"] = trial.evaluation.mean.objective;
  json["delta_log_perplexity"] = trial.evaluation.mean.delta_log_perplexity;
  json["kl"] = trial.evaluation.mean.kl;
  json["worst_domain"] = domains[trial.evaluation.worst_domain];
  json["parameters_removed"] = trial.removed;
  json["score"] = score;
  json["kl_gap"] = trial.evaluation.mean.kl_gap;
  json["exact"] = trial.exact;
  json["candidate"] = architecture::stable_hash(trial.candidate);
  return json;
}

base::Json to_json(const calibrate::LossIncrease& cost) {
  return {cost.objective, cost.delta_log_perplexity, cost.kl, cost.kl_gap};
}

calibrate::LossIncrease cost_from_json(const base::Json& json) {
  return {record::number_or_infinity(json.at(0)), record::number_or_infinity(json.at(1)),
          record::number_or_infinity(json.at(2)), record::number_or_infinity(json.at(3))};
}

base::Json to_json(const calibrate::Evaluation& evaluation) {
  base::Json json = {{"mean", to_json(evaluation.mean)}, {"worst_domain", evaluation.worst_domain}};
  for (const auto& domain : evaluation.domains) json["domains"].push_back(to_json(domain));
  return json;
}

calibrate::Evaluation evaluation_from_json(const base::Json& json) {
  calibrate::Evaluation evaluation{.mean = cost_from_json(json.at("mean")),
                                   .domains = {},
                                   .worst_domain = json.at("worst_domain").get<std::size_t>()};
  for (const auto& domain : json.at("domains")) evaluation.domains.push_back(cost_from_json(domain));
  return evaluation;
}

class Search {
 public:
  Search(const model::Weights& input, const std::vector<calibrate::SourceText>& domains,
         const PruneOptions& options, record::Observer& observer,
         const std::vector<calibrate::BlockScores>* given, const PrunePlace& place)
      : input_(input),
        given_(given),
        options_(options),
        observer_(observer),
        target_(target_parameters(input.config, options)),
        planned_(
            planned_evaluation(input, domains, options, place, calibrate::kCalibrationBatchTokens, observer)),
        evaluator_(input, domains, planned_.options),
        candidate_(architecture::whole(input.config)),
        parameters_(architecture::num_parameters(input.config)) {
    if (!place.saved_file.empty()) {
      file_.emplace(place.saved_file,
                    objective_identity(input, evaluator_, domains, options.objective).dump(), observer);
      for (const auto& line : file_->earlier())
        if (line.contains("exact"))  // else of an earlier version
          known_[{line.at("candidate").get<std::string>(), line.at("exact").get<bool>()}] =
              evaluation_from_json(line);
    }
  }

  void run() {
    while (parameters_ > target_) step();
  }
  const architecture::Kept& candidate() const { return candidate_; }
  const Evaluator& evaluator() const { return evaluator_; }
  std::int64_t target() const { return target_; }
  std::int64_t memory_bytes() const { return planned_.memory_bytes; }
  base::Json decisions() const { return decisions_; }

 private:
  void step();
  calibrate::UnitScores scores();
  calibrate::Evaluation evaluated(const architecture::Kept& candidate, KlOver over);
  Trial measured(const Move& move, const calibrate::UnitScores& scores);
  double score(const Trial& trial) const { return score(trial, trial.evaluation.mean.objective, objective_); }
  static double score(const Trial& trial, double objective, double before) {
    return (objective - before) / static_cast<double>(trial.removed);
  }
  double highest(const calibrate::Evaluation& evaluation) const {
    return evaluation.mean.objective + options_.objective.kl * evaluation.mean.kl_gap;
  }
  void measure_exactly(Trial& trial);
  bool may_cost_less_per_parameter(const Trial& second, const Trial& first) const;
  template <typename Admitted, typename Value, typename MayBeLess>
  std::size_t least(std::vector<Trial>& trials, Admitted admitted, Value value, MayBeLess may_be_less);
  std::size_t chosen(std::vector<Trial>& trials, const calibrate::UnitScores& scores);
  void record_decision(const Trial& trial, const std::vector<Trial>& trials);

  const model::Weights& input_;
  const std::vector<calibrate::BlockScores>* given_;
  const PruneOptions& options_;
  record::Observer& observer_;
  std::int64_t target_;
  PlannedEvaluation planned_;
  Evaluator evaluator_;
  architecture::Kept candidate_;
  std::int64_t inactive_channels_ = 0;            // of the current candidate
  std::int64_t parameters_;                       // of the current candidate
  double objective_ = 0, highest_objective_ = 0;  // of the current candidate, and what it is at most
  base::Json decisions_ = base::Json::array();
  std::optional<record::SavedLines> file_;
  std::map<std::pair<std::string, bool>, calibrate::Evaluation>
      known_;  // by the candidate's hash, and whether exact
};

// Measured on the current candidate, if they are not given.
calibrate::UnitScores Search::scores() {
  if (!options_.heads && !options_.channels && !options_.hidden) return {};  // nothing is ranked
  const auto scores = given_ ? calibrate::unit_scores(*given_)
                             : in_input(calibrate::unit_scores(calibrate::measured_scores(
                                            compress::sliced(input_, candidate()), evaluator_.batches(),
                                            ranking_options(options_))),
                                        input_.config, candidate());
  inactive_channels_ = 0;
  for (const auto& block : candidate().blocks) {
    const auto& channels = scores.channels[static_cast<std::size_t>(block.number)];
    for (const auto channel : block.channels)
      inactive_channels_ += calibrate::is_inactive(channels[static_cast<std::size_t>(channel)]) ? 1 : 0;
  }
  return scores;
}

calibrate::Evaluation Search::evaluated(const architecture::Kept& candidate, KlOver over) {
  const std::pair key(architecture::stable_hash(candidate), over == KlOver::vocabulary);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  record::stop_if_asked(observer_, "prune", "the candidates measured so far");
  const auto evaluation = evaluator_.evaluate(candidate, over);
  if (file_) {
    auto line = to_json(evaluation);
    line["candidate"] = key.first;
    line["exact"] = key.second;
    file_->append(line);
  }
  return known_[key] = evaluation;
}

Trial Search::measured(const Move& move, const calibrate::UnitScores& scores) {
  Trial trial{.move = move, .candidate = moved(candidate(), move, scores), .evaluation = {}};
  trial.evaluation = evaluated(trial.candidate, KlOver::top_k);
  trial.parameters = architecture::parameters_of(input_.config, trial.candidate);
  trial.removed = parameters_ - trial.parameters;
  if (!std::isfinite(trial.evaluation.mean.objective))
    observer_.message(record::Level::warning, base::join("prune: f of the candidate '", describe(move),
                                                         "' is not finite, so it loses against all others."));
  return trial;
}

void Search::measure_exactly(Trial& trial) {
  if (trial.exact) return;
  trial.evaluation = evaluated(trial.candidate, KlOver::vocabulary);
  trial.exact = true;
  // What they all are compared with has to be as exact.
  if (highest_objective_ > objective_)
    highest_objective_ = objective_ = evaluated(candidate_, KlOver::vocabulary).mean.objective;
}

// Whatever f of the current candidate is between its bounds; scores are linear in it.
bool Search::may_cost_less_per_parameter(const Trial& second, const Trial& first) const {
  for (const double before : {objective_, highest_objective_})
    if (score(second, second.evaluation.mean.objective, before) <
        score(first, highest(first.evaluation), before))
      return true;
  return false;
}

// The first of those that satisfy `admitted` with the least value.  Values are lower bounds: while the first
// two may change places, both are measured exactly.
template <typename Admitted, typename Value, typename MayBeLess>
std::size_t Search::least(std::vector<Trial>& trials, Admitted admitted, Value value, MayBeLess may_be_less) {
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
    for (const auto close : {best, second}) measure_exactly(trials[close]);
  }
}

std::size_t Search::chosen(std::vector<Trial>& trials, const calibrate::UnitScores& scores) {
  const auto reaches = [&](const Trial& trial) { return trial.parameters <= target_; };
  const auto best = least(
      trials, [](const Trial&) { return true; }, [this](const Trial& trial) { return score(trial); },
      [this](const Trial& second, const Trial& first) { return may_cost_less_per_parameter(second, first); });
  if (!reaches(trials[best])) return best;
  const auto finish = narrowing_to(input_.config, candidate(), options_, target_);
  const auto known = std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.move.part == finish.part && trial.move.width == finish.width;
  });
  if (finish.width > 0 && !known) trials.push_back(measured(finish, scores));
  return least(
      trials, reaches, [](const Trial& trial) { return trial.evaluation.mean.objective; },
      [this](const Trial& second, const Trial& first) {
        return second.evaluation.mean.objective < highest(first.evaluation);
      });
}

void Search::step() {
  const auto scores = this->scores();
  const auto moves = moves_from(candidate(), options_);
  const auto what = base::join("prune: candidates of step ", decisions_.size() + 1);
  std::vector<Trial> trials;
  for (const auto& move : moves) {
    observer_.progress(what, static_cast<std::int64_t>(trials.size()),
                       static_cast<std::int64_t>(moves.size()));
    trials.push_back(measured(move, scores));
  }
  observer_.progress(what, static_cast<std::int64_t>(moves.size()), static_cast<std::int64_t>(moves.size()));
  const auto& trial = trials[chosen(trials, scores)];
  base::require<base::ValidationError>(std::isfinite(trial.evaluation.mean.objective),
                                       "prune: expected a candidate of step ", decisions_.size() + 1,
                                       " with a finite f, found none of ", trials.size(),
                                       "; use float32 or a larger target.");
  record_decision(trial, trials);
  parameters_ = trial.parameters;
  objective_ = trial.evaluation.mean.objective;
  highest_objective_ = highest(trial.evaluation);
  candidate_ = trial.candidate;
}

void Search::record_decision(const Trial& trial, const std::vector<Trial>& trials) {
  const auto& evaluation = trial.evaluation;
  base::Json decision = {{"step", decisions_.size() + 1}};
  decision.update(to_json(trial, score(trial), evaluator_.domain_names()));
  decision["parameters"] = trial.parameters;
  if (options_.channels) decision["inactive_channels"] = inactive_channels_;
  decision.update(to_json(evaluation, evaluator_.domain_names()));
  decision["candidates"] = base::Json::array();
  for (const auto& other : trials)
    decision["candidates"].push_back(to_json(other, score(other), evaluator_.domain_names()));
  decisions_.push_back(std::move(decision));
  observer_.message(
      record::Level::info,
      base::join("prune step ", decisions_.size(), ": ", describe(trial.move), ": loss increase ", std::fixed,
                 std::setprecision(4), evaluation.mean.objective, " nats/token, ", human(trial.parameters),
                 " of ", human(architecture::num_parameters(input_.config)), " parameters left (target ",
                 human(target_), "), worst source ", evaluator_.domain_names()[evaluation.worst_domain]));
}

}  // namespace

PruneResult prune_stepwise(const model::Weights& input, const std::vector<calibrate::SourceText>& domains,
                           const PruneOptions& options, record::Observer& observer,
                           const std::vector<calibrate::BlockScores>* given, const PrunePlace& place) {
  const auto start = std::chrono::steady_clock::now();
  Search search(input, domains, options, observer, given, place);
  search.run();
  auto result = make_result(input, search.evaluator(), search.candidate(), domains, options, observer);
  result.report["parameters_target"] = search.target();
  result.report["memory_planned_bytes"] = search.memory_bytes();
  result.report["decisions"] = search.decisions();
  report_costs(result.report, input, {result.weights.config}, options.sequence_length);
  result.report["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace retort::prune
