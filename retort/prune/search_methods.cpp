#include "retort/prune/search_methods.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/architecture/counts.h"
#include "retort/prune/staged.h"
#include "retort/search/additive.h"
#include "retort/search/evolution.h"
#include "retort/search/greedy.h"
#include "retort/search/tabu.h"

namespace retort::prune {
namespace {

using search::State;

// Small steps are worth more than many candidates: the guesses order them well.
constexpr std::int64_t kGreedyCandidates = 2, kGreedySteps = 72, kFewestGreedySteps = 6;
constexpr std::int64_t kTabuCandidates = 6, kTabuRandomCandidates = 2;  // of an iteration
constexpr double kProbesShare = 1.0 / 4;                                // of the budget, for more
constexpr std::int64_t kRandomStates = std::int64_t{1} << 20;

const search::Space& space_of(const ModelSearch& s) {
  return s.space.space();
}

double first_rung_tokens(const ModelSearch& s) {
  return piece_tokens(s.evaluator, 0, s.journal.pieces(0));
}

// What is left of the budget, besides one evaluation on all of the text.
double left(const ModelSearch& s) {
  const auto budget = s.plan.budget_tokens;
  if (budget == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(budget) - s.journal.spent() - static_cast<double>(s.evaluator.tokens());
}

// Evaluations on the way to the target that a share of what is left pays for; without a budget any number.
double affordable(const ModelSearch& s, double share) {
  const double all = static_cast<double>(architecture::num_parameters(s.setup.input.config));
  const double mean_work = (1 + static_cast<double>(s.plan.target_parameters) / all) / 2;
  return share * left(s) / (mean_work * first_rung_tokens(s));
}

// Levels between the whole model and the target, on the mean.
double levels_to_go(const search::Space& space) {
  double levels = 0, removed = 0;
  for (const auto& unit : space.units) {
    levels += static_cast<double>(unit.removed.size() - 1);
    removed += static_cast<double>(unit.removed.back());
  }
  return levels * static_cast<double>(space.least_removed) / removed;
}

// Probes of each unit, doubled while there are levels between them and a share of the budget pays for all;
// never fewer than two.
std::int32_t affordable_probes(const ModelSearch& s, double share) {
  const auto budget = static_cast<double>(s.plan.budget_tokens);
  const auto pays = [&](std::int64_t evaluations) {
    return budget == 0 || static_cast<double>(evaluations) * first_rung_tokens(s) <= share * budget;
  };
  const auto evaluations = [&](std::int32_t probes) {
    return search::Proxy::evaluations(space_of(s), probes);
  };
  auto probes = kLeastProbes;
  while (evaluations(2 * probes) > evaluations(probes) && pays(evaluations(2 * probes))) probes *= 2;
  return probes;
}

search::Proxy probed(const ModelSearch& s) {
  return search::Proxy::probed(space_of(s), s.journal, affordable_probes(s, kProbesShare));
}

State by_influence(const ModelSearch& s) {
  s.journal.spend(static_cast<double>(s.evaluator.tokens()));
  return search::one_shot(space_of(s),
                          s.space.proxy_of(calibrate::influences(s.setup.input, s.evaluator.batches())));
}

double measured_on_all(const ModelSearch& s, const State& state) {
  return s.journal.objective(state, s.journal.last_rung());
}

// The best of several choices from scores of single units, probed twice as densely each time: a curve through
// few probes is too high where little goes of a unit, one through many too low where little goes of each.
void additive(const ModelSearch& s) {
  const auto most = affordable_probes(s, 1);
  for (auto probes = kLeastProbes; probes <= most; probes *= 2) {
    const auto proxy = search::Proxy::probed(space_of(s), s.journal, probes);
    measured_on_all(s, search::least_additive(space_of(s), proxy));
  }
}

// As fine as a share of the budget allows; where even steps of one level leave some of it over, the rest is
// for more candidates and more text.
search::GreedyOptions greedy_options(const ModelSearch& s, double share) {
  const double steps = std::clamp(affordable(s, share) / static_cast<double>(kGreedyCandidates),
                                  static_cast<double>(kFewestGreedySteps), static_cast<double>(kGreedySteps));
  search::GreedyOptions options{
      .rung = 0, .candidates = kGreedyCandidates, .budget = {}, .steps = static_cast<std::int64_t>(steps)};
  options.limit = s.journal.spent() + left(s);
  if (levels_to_go(space_of(s)) < steps) options.budget = share * left(s);
  return options;
}

// What is known costs nothing, so what a pass leaves over goes into a better one, until nothing new fits.
void greedy(const ModelSearch& s) {
  const auto proxy = probed(s);
  auto options = greedy_options(s, 1);
  if (!options.budget) {
    const auto least = static_cast<double>(kGreedyCandidates);
    const auto units = static_cast<double>(space_of(s).units.size());
    options.candidates = static_cast<std::int64_t>(
        std::clamp(affordable(s, 1) / static_cast<double>(options.steps), least, std::max(units, least)));
  }
  for (std::size_t known = 0; s.journal.entries().size() > known; options.budget = left(s)) {
    known = s.journal.entries().size();
    search::greedy(s.journal, proxy, options);
    if (!options.budget) return;
  }
}

void tabu_from(const ModelSearch& s, search::Proxy proxy, const NamedStates& named) {
  std::vector<State> starts;
  for (const auto& [name, state] : named) starts.push_back(state);
  search::tabu(s.journal, std::move(proxy), starts,
               {.seed = s.setup.options.seed,
                .candidates = kTabuCandidates,
                .random_candidates = kTabuRandomCandidates});
}

// A start is one once it is measured.
void begin_from(const ModelSearch& s, const char* name, State state, NamedStates& starts) {
  measured_on_all(s, state);
  starts.emplace_back(name, std::move(state));
}

// Begins from the best of the simple methods, all within the budget.
void tabu(const ModelSearch& s, NamedStates& starts) {
  auto proxy = probed(s);
  const auto& space = space_of(s);
  begin_from(s, "one_shot", search::one_shot(space, proxy), starts);
  begin_from(s, "influence", by_influence(s), starts);
  if (!space.removed_together) begin_from(s, "additive", search::least_additive(space, proxy), starts);
  // A coarse one would cost more than it gives.
  if (affordable(s, 1.0 / 3) >= static_cast<double>(kGreedyCandidates * kGreedySteps))
    begin_from(s, "greedy",
               search::greedy(s.journal, proxy, {.candidates = kGreedyCandidates, .steps = kGreedySteps}),
               starts);
  tabu_from(s, std::move(proxy), starts);
}

void staged(const ModelSearch& s, NamedStates& starts) {
  auto proxy = probed(s);
  auto options = staged_options(s.space, architecture::whole(s.setup.input.config), s.scores);
  options.greedy = greedy_options(s, 0.5);
  begin_from(s, "staged", search::staged(s.journal, proxy, options), starts);
  tabu_from(s, std::move(proxy), starts);
}

void run(const ModelSearch& s, NamedStates& starts) {
  switch (s.setup.options.search.method) {
    case SearchMethod::greedy:
      return greedy(s);
    case SearchMethod::additive:
      return additive(s);
    case SearchMethod::influence:
      measured_on_all(s, by_influence(s));
      return;
    case SearchMethod::random:
      search::random_search(s.journal, s.setup.options.seed, kRandomStates);
      return;
    case SearchMethod::evolution:
      search::evolution(s.journal, {}, {.seed = s.setup.options.seed});
      return;
    case SearchMethod::staged:
      return staged(s, starts);
    case SearchMethod::tabu:
      return tabu(s, starts);
  }
}

}  // namespace

double piece_tokens(const Evaluator& evaluator, std::size_t first, std::size_t last) {
  std::int64_t sum = 0;
  for (auto piece = first; piece < last; ++piece) sum += evaluator.pieces()[piece].tokens;
  return static_cast<double>(sum);
}

NamedStates run_method(const ModelSearch& search) {
  NamedStates starts;
  search::run_search([&] { run(search, starts); });
  return starts;
}

}  // namespace retort::prune
