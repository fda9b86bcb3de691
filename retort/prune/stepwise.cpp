#include "retort/prune/stepwise.h"

#include <cmath>
#include <iomanip>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/compress/surgery.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/make.h"
#include "retort/prune/model_space.h"
#include "retort/prune/part_scores.h"
#include "retort/prune/saved_lines.h"
#include "retort/record/keys.h"
#include "retort/record/stopped.h"
#include "retort/search/greedy.h"

namespace retort::prune {
namespace {

namespace keys = record::keys;

// Only this file reads them.
constexpr record::Key kFirstPiece{"first"}, kPiecesOfLine{"pieces"};

// What the search knows of a candidate: its loss increase with the bound of the KL, how much more it may be,
// and what it is with the KL over the vocabulary.
constexpr std::size_t kLowerBound = 0, kExactPiece = 2, kPiecesOfAll = 3;
const std::vector<search::Rung> kBoundRungs = {{{1}}, {{1, 1}}, {{0, 0, 1}}};

std::string human(std::int64_t count) {
  return base::human_count(static_cast<double>(count));
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

class Stepwise {
 public:
  Stepwise(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
           SharedEvaluator& shared)
      : setup_(setup),
        plan_(plan),
        shared_(shared),
        file_(setup.place.saved_file,
              objective_identity(setup.input, evaluator, plan.text, setup.options.objective).dump(),
              setup.observer),
        space_(setup.input.config, setup.options, plan.target, {}, plan.size),
        journal_(space_.space(), [this](auto tasks, const auto& tell) { measure(tasks, tell); },
                 {.rungs = kBoundRungs, .charge = [this](const search::Task& task) {
                    return task.state == space_.space().whole() ? 0.0 : 1.0;
                  }}) {
    for (const auto& line : file_.earlier()) take(line);
  }

  /// Goes to the target.
  architecture::Kept result() {
    const auto state = search::greedy(
        journal_, {.between_bounds = search::BetweenBounds{
                       .finishing = space_.unit_of_all_channels(),
                       .on_state = [this](const search::State& at) { rank(at); },
                       .on_step = [this](const auto& steps, auto taken) { decide(steps, taken); }}});
    return space_.candidate(state);
  }
  std::vector<Decision> decisions() && { return std::move(decisions_); }

 private:
  // A line that is not ours is measured anew.
  void take(const base::Json& line) try {
    std::vector<double> pieces;
    for (const auto& piece : line.at(kPiecesOfLine)) pieces.push_back(number_or_infinity(piece));
    known_[{line.at(keys::kCandidate).get<std::string>(), line.at(kFirstPiece).get<std::size_t>()}] = pieces;
  } catch (const nlohmann::json::exception&) {
  }

  // What is left is ranked as a model of its own, if no scores are given.
  void rank(const search::State& state) {
    state_ = state;
    scores_ = {};
    if (!setup_.options.removes_parts()) return;  // nothing is ranked
    const auto kept = space_.candidate(state);
    scores_ = setup_.given ? calibrate::unit_scores(*setup_.given) : measured_scores(kept);
    space_.rank_again(state, scores_);
  }

  calibrate::UnitScores measured_scores(const architecture::Kept& kept) const {
    const auto& input = setup_.input;
    const auto batches =
        calibrate::calibration_batches(plan_.text.fitted, input.config, input.options().device());
    const auto scores =
        calibrate::measured_scores(compress::sliced(input, kept), batches, plan_.ranking, &setup_.observer);
    return in_input(calibrate::unit_scores(scores), input.config, kept);
  }

  // Answers the journal.
  void measure(std::span<const search::Task> tasks, const search::Journal::Tell& tell) {
    const auto what = base::join("prune: candidates of step ", decisions_.size() + 1);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks.size() > 1) setup_.observer.progress(what, std::ssize(tasks.first(i)), std::ssize(tasks));
      tell(i, pieces_of(tasks[i]));
    }
    if (tasks.size() > 1) setup_.observer.progress(what, std::ssize(tasks), std::ssize(tasks));
  }

  std::vector<double> pieces_of(const search::Task& task) {
    std::vector<double> pieces;
    if (task.state == space_.space().whole()) return std::vector<double>(task.last - task.first, 0);
    const auto candidate = space_.candidate(task.state);
    for (auto first = task.first; first < task.last; first = first < kExactPiece ? kExactPiece : kPiecesOfAll)
      for (const auto piece : known_or_measured(candidate, first < kExactPiece ? kLowerBound : kExactPiece))
        pieces.push_back(piece);
    if (task.first == kLowerBound && !std::isfinite(pieces.front()))
      setup_.observer.message(
          record::Level::warning,
          base::join("prune: the loss increase of the candidate '", describe(space_.move(state_, task.state)),
                     "' is not finite, so it loses against all others."));
    return pieces;
  }

  const std::vector<double>& known_or_measured(const architecture::Kept& candidate, std::size_t first) {
    const std::pair key(architecture::stable_hash(candidate), first);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    record::stop_if_asked(setup_.observer, "prune", "the candidates measured so far");
    const auto over = first == kExactPiece ? KlOver::vocabulary : KlOver::top_k;
    const auto mean = shared_.evaluate(candidate, over).mean;
    const double weight = setup_.options.objective.kl;
    std::vector<double> pieces{mean.objective};
    if (first == kLowerBound) pieces.push_back(weight > 0 ? weight * mean.kl_gap : 0);
    file_.append({{keys::kCandidate, key.first}, {kFirstPiece, first}, {kPiecesOfLine, pieces}});
    return known_[key] = std::move(pieces);
  }

  MeasuredMove measured_move(const search::BoundedSteps& steps, std::size_t number) const {
    const auto step = steps.step(number);
    return {.move = space_.move(steps.from(), step.state),
            .objective = step.objective,
            .parameters_removed = steps.removed(number),
            .score = step.rise / static_cast<double>(steps.removed(number)),
            .exact = steps.is_exact(number),
            .candidate = architecture::stable_hash(space_.candidate(step.state))};
  }

  void decide(const search::BoundedSteps& steps, std::size_t taken) {
    const auto number = decisions_.size() + 1;
    base::require<base::ValidationError>(std::isfinite(steps.step(taken).objective),
                                         "prune: expected a candidate of step ", number,
                                         " with a finite loss increase, found none of ",
                                         steps.states().size(), "; use float32 or a larger target.");
    const auto& input = setup_.input.config;
    Decision decision{
        .chosen = measured_move(steps, taken),
        .parameters = architecture::parameters_of(input, space_.candidate(steps.states()[taken]))};
    for (std::size_t i = 0; i < steps.states().size(); ++i)
      decision.candidates.push_back(measured_move(steps, i));
    if (setup_.options.channels)
      decision.inactive_channels = count_inactive(scores_, space_.candidate(steps.from()));
    setup_.observer.message(
        record::Level::info,
        base::join("prune step ", number, ": ", describe(decision.chosen.move), ": loss increase ",
                   std::fixed, std::setprecision(4), decision.chosen.objective, " nats/token, ",
                   human(decision.parameters), " of ", human(architecture::num_parameters(input)),
                   " parameters left (target ", plan_.size.short_text(plan_.target), ")"));
    decisions_.push_back(std::move(decision));
  }

  const PruneSetup& setup_;
  const ResolvedPlan& plan_;
  SharedEvaluator& shared_;
  SavedLines file_;
  std::map<std::pair<std::string, std::size_t>, std::vector<double>> known_;  // by candidate and first piece
  ModelSpace space_;
  search::Journal journal_;
  search::State state_;           // where the search stands
  calibrate::UnitScores scores_;  // of its parts
  std::vector<Decision> decisions_;
};

}  // namespace

PruneResult prune_stepwise(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                           SharedEvaluator& shared) {
  Stepwise stepwise(setup, plan, evaluator, shared);
  const auto kept = stepwise.result();
  auto result =
      make_result(setup, plan, evaluator, {kept, {}, shared.document_sums(kept, KlOver::vocabulary)});
  result.report.course = std::move(stepwise).decisions();
  result.report.speed = speed_of(setup, {result.weights.config});
  return result;
}

}  // namespace retort::prune
