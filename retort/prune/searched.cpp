#include "retort/prune/searched.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <limits>
#include <map>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/eval/speed_table.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/model_space.h"
#include "retort/prune/moves.h"
#include "retort/prune/options.h"
#include "retort/prune/part_scores.h"
#include "retort/prune/staged.h"
#include "retort/record/saved_lines.h"
#include "retort/record/stopped.h"
#include "retort/search/additive.h"
#include "retort/search/best_states.h"
#include "retort/search/evolution.h"
#include "retort/search/greedy.h"
#include "retort/search/tabu.h"

namespace retort::prune {
namespace {

using search::Journal;
using search::State;

constexpr std::array kMethodNames = {"greedy",   "tabu",      "evolution", "random",
                                     "additive", "influence", "staged"};
constexpr std::array kUnitNames = {"uniform", "blocks", "sub_blocks", "per_layer"};
// Small steps are worth more than many candidates: the guesses order them well.
constexpr std::int64_t kGreedyCandidates = 2, kGreedySteps = 72, kFewestGreedySteps = 6;
constexpr std::int64_t kCandidates = 6, kRandomCandidates = 2;  // of an iteration of it
constexpr std::int32_t kProbes = 2;                             // of each unit, at least
constexpr double kProbesShare = 1.0 / 4;                        // of the budget, for more
constexpr std::int64_t kBatchTokens = 512;
constexpr std::int64_t kFinalistsShown = 8;
constexpr std::array<std::int64_t, 4> kRungParts = {16, 4, 2, 1};  // of the batches of a domain, one part

// At least one batch of each domain at each fidelity; short texts have fewer fidelities.
std::vector<search::Rung> rungs_of(const Evaluator& evaluator) {
  const auto rounds = evaluator.pieces().back().round + 1;
  std::vector<search::Rung> rungs;
  std::int64_t before = 0;
  for (const auto part : kRungParts)
    if (const auto count = std::max<std::int64_t>(1, rounds / part); count > before)
      rungs.push_back({evaluator.piece_weights(before = count)});
  return rungs;
}

// Everything that f of a candidate on a rung depends on.
std::string fingerprint(const model::Weights& input, const std::vector<calibrate::SourceText>& domains,
                        const PruneOptions& options, const Evaluator& evaluator) {
  auto json = objective_identity(input, evaluator, domains, options.objective);
  for (const auto& rung : rungs_of(evaluator)) json["rungs"].push_back(rung.weights);
  return json.dump();
}

base::Json to_json(const Journal::Entry& entry, const ModelSpace& space) {
  return {{"candidate", architecture::stable_hash(space.candidate(entry.state))},
          {"state", entry.state},
          {"rung", entry.rung},
          {"objective", entry.objective},
          {"charge", entry.charge},
          {"pieces", entry.pieces}};
}

// Those whose states still are the candidates that they were: other options, or scores that differ between
// machines where two are close, make others of them.
std::vector<Journal::Entry> entries_of(const std::vector<base::Json>& lines, const ModelSpace& space) {
  std::vector<Journal::Entry> entries;
  for (const auto& line : lines) {
    auto state = line.at("state").get<State>();
    if (!space.space().holds(state) ||
        architecture::stable_hash(space.candidate(state)) != line.at("candidate"))
      continue;
    std::vector<double> pieces;
    for (const auto& piece : line.at("pieces")) pieces.push_back(record::number_or_infinity(piece));
    entries.push_back({std::move(state), line.at("rung").get<std::int32_t>(),
                       record::number_or_infinity(line.at("objective")), line.at("charge").get<double>(),
                       std::move(pieces)});
  }
  return entries;
}

// One of the best that a search found.
struct Finalist {
  State state;
  calibrate::LossIncreaseDifference behind;  // the first
  bool tied() const { return behind.value <= 0 || (behind.interval && behind.interval->low <= 0); }
};

class Searched {
 public:
  Searched(const model::Weights& input, const std::vector<calibrate::SourceText>& domains,
           const PruneOptions& options, const PrunePlace& place, record::Observer& observer,
           const std::vector<calibrate::BlockScores>* given)
      : input_(input),
        domains_(domains),
        options_(options),
        observer_(observer),
        target_(target_parameters(input.config, options)),
        planned_(planned_evaluation(input, domains, options, place, kBatchTokens, observer)),
        evaluator_(input, domains, planned_.options),
        scores_(given ? *given
                      : calibrate::measured_scores(input, evaluator_.batches(), ranking_options(options))),
        space_(input.config, options, target_, calibrate::unit_scores(scores_)),
        file_(place.saved_file, fingerprint(input, domains, options, evaluator_), observer),
        journal_(
            space_.space(), [this](auto tasks, const auto& tell) { evaluate(tasks, tell); },
            {.budget = static_cast<double>(options.search.budget_tokens),
             .rungs = rungs_of(evaluator_),
             .charge =
                 [this](const search::Task& task) {
                   return tokens(task.first, task.last) * space_.work(task.state);
                 },
             .on_entry = [this](const Journal::Entry& entry) { save(entry); }},
            entries_of(file_.earlier(), space_)) {}

  void run() {
    search::run_search([this] { search_by_method(); });
    base::require<base::ValidationError>(
        journal_.best().has_value() || count_not_finite() == 0, "prune: f of ", count_not_finite(),
        " candidates is not finite, and no other one reaches the target; use float32 or a larger target.");
    base::require<base::UsageError>(
        journal_.best().has_value(), "prune: search.budget_tokens of ", options_.search.budget_tokens,
        " did not suffice to evaluate one candidate on the whole calibration text of ", evaluator_.tokens(),
        " tokens; give more, or less calibration text.");
    find_finalists();
  }
  architecture::Kept candidate() const { return space_.candidate(finalists_.front().state); }
  /// The best and those that are tied with it, as many as the options want.
  std::vector<architecture::Kept> tied() const;
  const Evaluator& evaluator() const { return evaluator_; }
  base::Json report();

 private:
  double tokens(std::size_t first_piece, std::size_t last_piece) const;
  void save(const Journal::Entry& entry);
  std::int64_t count_not_finite() const;
  void evaluate(std::span<const search::Task> tasks, const Journal::Tell& tell);
  void search_by_method();
  double affordable(double share) const;
  double levels_to_go() const;
  double left() const;
  search::GreedyOptions greedy_options(double share) const;
  std::int32_t affordable_probes(double share) const;
  search::Proxy probed();
  void additive();
  void tabu();
  void greedy();
  void staged();
  void tabu_from(search::Proxy proxy, const std::vector<State>& starts);
  double searched_objective(const State& state) { return journal_.objective(state, journal_.last_rung()); }
  const std::vector<calibrate::DocumentSums>& documents_of(const State& state);
  base::Json parts_of(const State& state);
  void find_finalists();
  base::Json finalist_json(const Finalist& finalist, const eval::SpeedTable& speed);
  void report_finalists(base::Json& report);
  State admitted(const char* name, State state);
  State by_influence();

  const model::Weights& input_;
  const std::vector<calibrate::SourceText>& domains_;
  const PruneOptions& options_;
  record::Observer& observer_;
  std::int64_t target_;
  PlannedEvaluation planned_;
  Evaluator evaluator_;
  std::vector<calibrate::BlockScores> scores_;
  ModelSpace space_;
  record::SavedLines file_;
  Journal journal_;
  std::vector<std::pair<std::string, State>> starts_;
  std::map<State, std::vector<calibrate::DocumentSums>> documents_;
  std::vector<Finalist> finalists_;
};

double Searched::tokens(std::size_t first_piece, std::size_t last_piece) const {
  std::int64_t sum = 0;
  for (auto piece = first_piece; piece < last_piece; ++piece) sum += evaluator_.pieces()[piece].tokens;
  return static_cast<double>(sum);
}

void Searched::save(const Journal::Entry& entry) {
  file_.append(to_json(entry, space_));
  if (!std::isfinite(entry.objective))
    observer_.message(
        record::Level::warning,
        base::join("prune: f of candidate ", architecture::stable_hash(space_.candidate(entry.state)),
                   " is not finite, so it loses against all others."));
}

std::int64_t Searched::count_not_finite() const {
  return std::count_if(journal_.entries().begin(), journal_.entries().end(),
                       [](const auto& entry) { return !std::isfinite(entry.objective); });
}

void Searched::evaluate(std::span<const search::Task> tasks, const Journal::Tell& tell) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    record::stop_if_asked(observer_, "prune", "the candidates measured so far");
    tell(i, evaluator_.piece_costs(space_.candidate(tasks[i].state), tasks[i].first, tasks[i].last));
    observer_.progress("prune: tokens searched", static_cast<std::int64_t>(journal_.spent()),
                       options_.search.budget_tokens);
  }
}

void Searched::search_by_method() {
  switch (options_.search.method) {
    case SearchMethod::greedy:
      greedy();
      return;
    case SearchMethod::additive:
      additive();
      return;
    case SearchMethod::influence:
      journal_.objective(by_influence(), journal_.last_rung());
      return;
    case SearchMethod::random:
      search::random_search(journal_, options_.seed, std::int64_t{1} << 20);
      return;
    case SearchMethod::evolution:
      search::evolution(journal_, {}, {.seed = options_.seed});
      return;
    case SearchMethod::staged:
      staged();
      return;
    case SearchMethod::tabu:
      tabu();
  }
}

State Searched::by_influence() {
  journal_.spend(static_cast<double>(evaluator_.tokens()));
  return search::one_shot(space_.space(),
                          space_.proxy_of(calibrate::influences(input_, evaluator_.batches())));
}

State Searched::admitted(const char* name, State state) {
  journal_.objective(state, journal_.last_rung());
  starts_.emplace_back(name, state);
  return state;
}

// Of the budget, besides one evaluation on all of the text.
double Searched::left() const {
  if (options_.search.budget_tokens == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(options_.search.budget_tokens) - journal_.spent() -
         static_cast<double>(evaluator_.tokens());
}

// Evaluations on the way to the target that a share of what is left pays for; without a budget any number.
double Searched::affordable(double share) const {
  const double all = static_cast<double>(architecture::num_parameters(input_.config));
  const double mean_work = (1 + static_cast<double>(target_) / all) / 2;
  return share * left() / (mean_work * tokens(0, journal_.pieces(0)));
}

// Levels between the whole model and the target, on the mean.
double Searched::levels_to_go() const {
  double levels = 0, removed = 0;
  for (const auto& unit : space_.space().units) {
    levels += static_cast<double>(unit.removed.size() - 1);
    removed += static_cast<double>(unit.removed.back());
  }
  return levels * static_cast<double>(space_.space().least_removed) / removed;
}

// Probes of each unit, doubled while there are levels between them and a share of the budget pays for all;
// never fewer than two.
std::int32_t Searched::affordable_probes(double share) const {
  const auto budget = static_cast<double>(options_.search.budget_tokens);
  const auto pays = [&](std::int64_t evaluations) {
    return budget == 0 || static_cast<double>(evaluations) * tokens(0, journal_.pieces(0)) <= share * budget;
  };
  const auto evaluations = [&](std::int32_t probes) {
    return search::Proxy::evaluations(space_.space(), probes);
  };
  auto probes = kProbes;
  while (evaluations(2 * probes) > evaluations(probes) && pays(evaluations(2 * probes))) probes *= 2;
  return probes;
}

search::Proxy Searched::probed() {
  return search::Proxy::probed(space_.space(), journal_, affordable_probes(kProbesShare));
}

// The best of several choices from scores of single units, probed twice as densely each time: a curve through
// few probes is too high where little goes of a unit, one through many too low where little goes of each.
void Searched::additive() {
  const auto most = affordable_probes(1);
  for (auto probes = kProbes; probes <= most; probes *= 2) {
    const auto proxy = search::Proxy::probed(space_.space(), journal_, probes);
    journal_.objective(search::least_additive(space_.space(), proxy), journal_.last_rung());
  }
}

// As fine as a share of the budget allows; where even steps of one level leave some of it over, the rest is
// for more candidates and more text.
search::GreedyOptions Searched::greedy_options(double share) const {
  const double steps = std::clamp(affordable(share) / static_cast<double>(kGreedyCandidates),
                                  static_cast<double>(kFewestGreedySteps), static_cast<double>(kGreedySteps));
  search::GreedyOptions options{
      .rung = 0, .candidates = kGreedyCandidates, .budget = {}, .steps = static_cast<std::int64_t>(steps)};
  if (levels_to_go() < steps) options.budget = share * left();
  return options;
}

// What is known costs nothing, so what a pass leaves over goes into a better one, until nothing new fits.
void Searched::greedy() {
  const auto proxy = probed();
  auto options = greedy_options(1);
  if (!options.budget) {
    const auto units = static_cast<double>(space_.space().units.size());
    options.candidates = static_cast<std::int64_t>(
        std::clamp(affordable(1) / static_cast<double>(options.steps), static_cast<double>(kGreedyCandidates),
                   std::max(units, static_cast<double>(kGreedyCandidates))));
  }
  for (std::size_t known = 0; journal_.entries().size() > known; options.budget = left()) {
    known = journal_.entries().size();
    search::greedy(journal_, proxy, options);
    if (!options.budget) return;
  }
}

// Begins from the best of the simple methods, all within the budget.
void Searched::tabu() {
  auto proxy = probed();
  std::vector<State> starts{admitted("influence", by_influence()),
                            admitted("one_shot", search::one_shot(space_.space(), proxy))};
  if (!space_.space().removed_together)
    starts.push_back(admitted("additive", search::least_additive(space_.space(), proxy)));
  // A coarse one would cost more than it gives.
  if (affordable(1.0 / 3) >= static_cast<double>(kGreedyCandidates * kGreedySteps))
    starts.push_back(admitted(
        "greedy", search::greedy(journal_, proxy, {.candidates = kGreedyCandidates, .steps = kGreedySteps})));
  tabu_from(std::move(proxy), starts);
}

void Searched::staged() {
  auto proxy = probed();
  auto options = staged_options(space_, architecture::whole(input_.config), scores_);
  options.greedy = greedy_options(0.5);
  const auto start = admitted("staged", search::staged(journal_, proxy, options));
  tabu_from(std::move(proxy), {start});
}

void Searched::tabu_from(search::Proxy proxy, const std::vector<State>& starts) {
  search::tabu(journal_, std::move(proxy), starts,
               {.seed = options_.seed, .candidates = kCandidates, .random_candidates = kRandomCandidates});
}

std::vector<architecture::Kept> Searched::tied() const {
  std::vector<architecture::Kept> candidates;
  for (const auto& finalist : finalists_)
    if (finalist.tied() && std::ssize(candidates) < options_.search.finalists)
      candidates.push_back(space_.candidate(finalist.state));
  return candidates;
}

// By document, which the journal does not keep, and with the KL over the vocabulary: of candidates that are
// close the bound may favour the worse one.  Not charged to the search.
const std::vector<calibrate::DocumentSums>& Searched::documents_of(const State& state) {
  const auto [found, added] = documents_.try_emplace(state);
  if (!added) return found->second;
  record::stop_if_asked(observer_, "prune", "the candidates measured so far");
  return found->second = evaluator_.document_sums(space_.candidate(state), KlOver::vocabulary);
}

base::Json Searched::parts_of(const State& state) {
  auto json =
      to_json(calibrate::evaluation_of(documents_of(state), options_.objective), evaluator_.domain_names());
  json["candidate"] = architecture::stable_hash(space_.candidate(state));
  return json;
}

// Simultaneous intervals: each is as much wider as there are of them.
void Searched::find_finalists() {
  auto states = search::best_states(
      journal_, static_cast<std::size_t>(std::max(kFinalistsShown, options_.search.finalists)));
  std::map<State, double> objectives;
  for (const auto& state : states)
    objectives[state] = calibrate::evaluation_of(documents_of(state), options_.objective).mean.objective;
  std::stable_sort(states.begin(), states.end(),
                   [&](const State& a, const State& b) { return objectives.at(a) < objectives.at(b); });
  const double level = 1 - 0.05 / static_cast<double>(std::max<std::size_t>(states.size(), 2) - 1);
  for (const auto& state : states)
    finalists_.push_back({state, calibrate::difference_of(documents_of(state), documents_of(states.front()),
                                                          options_.objective, level)});
  if (options_.search.finalists > 1 && !finalists_.front().behind.interval)
    observer_.message(
        record::Level::warning,
        base::join("prune: a source has fewer than ", eval::kLeastDocuments,
                   " documents in the calibration text, too few to tell which candidates are tied: "
                   "of the finalists only the best is kept; raise calibration_tokens."));
}

base::Json Searched::finalist_json(const Finalist& finalist, const eval::SpeedTable& speed) {
  const auto config = architecture::config_of(input_.config, space_.candidate(finalist.state));
  const auto& interval = finalist.behind.interval;
  auto json = parts_of(finalist.state);
  json.update(speed.cost(config));
  json.update({{"searched_objective", searched_objective(finalist.state)},
               {"behind", finalist.behind.value},
               {"interval", interval ? base::Json{interval->low, interval->high} : base::Json(nullptr)},
               {"tied", finalist.tied()},
               {"blocks", config.blocks.size()}});
  return json;
}

// With what they cost, beside the cost of the model that the search began with.
void Searched::report_finalists(base::Json& report) {
  std::vector<architecture::Config> configs;
  for (const auto& finalist : finalists_)
    configs.push_back(architecture::config_of(input_.config, space_.candidate(finalist.state)));
  const auto speed = report_costs(report, input_, configs, options_.sequence_length);
  for (const auto& finalist : finalists_) report["finalists"].push_back(finalist_json(finalist, speed));
}

base::Json Searched::report() {
  base::Json report = {{"parameters_target", target_},
                       {"memory_planned_bytes", planned_.memory_bytes},
                       {"method", kMethodNames[static_cast<std::size_t>(options_.search.method)]},
                       {"units", kUnitNames[static_cast<std::size_t>(options_.units)]},
                       {"searched_objective", searched_objective(finalists_.front().state)},
                       {"evaluations", journal_.entries().size()},
                       {"evaluations_not_finite", count_not_finite()},
                       {"tokens_spent", journal_.spent()},
                       {"tokens_budget", options_.search.budget_tokens},
                       {"starts", base::Json::object()},
                       {"curve", base::Json::array()}};
  std::int64_t inactive = 0;
  for (const auto& block : scores_) inactive += block.inactive_channels;
  report["inactive_channels"] = inactive;
  for (const auto& [name, state] : starts_) report["starts"][name] = parts_of(state);
  for (const auto& [spent, objective] : journal_.curve()) report["curve"].push_back({spent, objective});
  report_finalists(report);
  return report;
}

}  // namespace

PruneResult prune_searched(const model::Weights& input, const std::vector<calibrate::SourceText>& domains,
                           const PruneOptions& options, const PrunePlace& place, record::Observer& observer,
                           const std::vector<calibrate::BlockScores>* given,
                           const std::function<void(const model::Weights&)>& on_tied) {
  const auto start = std::chrono::steady_clock::now();
  Searched searched(input, domains, options, place, observer, given);
  searched.run();
  auto result = make_result(input, searched.evaluator(), searched.candidate(), domains, options, observer);
  result.report.update(searched.report());
  const auto tied = searched.tied();
  for (std::size_t i = 1; on_tied && i < tied.size(); ++i) {
    try {
      on_tied(make_weights(input, searched.evaluator(), tied[i], domains, options, observer));
    } catch (const base::ValidationError& error) {
      observer.message(record::Level::warning,
                       base::join("prune: finalist ", i + 1, " is left out: ", error.what()));
    }
  }
  result.report["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  observer.message(record::Level::info,
                   base::join("prune: ", kMethodNames[static_cast<std::size_t>(options.search.method)],
                              " search: loss increase ", std::fixed, std::setprecision(4),
                              result.report["objective"].get<double>(), " nats/token, ",
                              base::human_count(result.report["parameters_after"].get<double>()), " of ",
                              base::human_count(result.report["parameters_before"].get<double>()),
                              " parameters left (target ",
                              base::human_count(result.report["parameters_target"].get<double>()),
                              "), worst source ", result.report["worst_domain"].get<std::string>(),
                              ", after ", result.report["evaluations"].get<std::int64_t>(), " evaluations"));
  return result;
}

}  // namespace retort::prune
