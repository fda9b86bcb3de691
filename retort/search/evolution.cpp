#include "retort/search/evolution.h"

#include <algorithm>
#include <set>
#include <utility>

#include "retort/base/error.h"
#include "retort/search/race.h"
#include "retort/search/sampling.h"

namespace retort::search {

namespace {

// After so many draws in a row that were drawn before, few states are left that were not.
constexpr int kDrawsOfOld = 100;

}  // namespace

void random_search(Journal& journal, std::uint64_t seed, std::int64_t states) {
  std::set<State> drawn;
  int old = 0;
  for (std::int64_t i = 0; i < states && old < kDrawsOfOld; ++i) {
    base::Random random(seed, base::stream_of(base::join("random/", i)));
    auto state = random_state(journal.space(), random);
    journal.objective(state, journal.last_rung());
    old = drawn.insert(std::move(state)).second ? 0 : old + 1;
  }
}

void evolution(Journal& journal, const std::vector<State>& starts, const EvolutionOptions& options) {
  const Space& space = journal.space();
  auto first = starts;
  for (std::int64_t i = 0; i < options.starts; ++i) {
    base::Random random(options.seed, base::stream_of(base::join("evolution/start/", i)));
    first.push_back(random_state(space, random));
  }
  base::require<base::UsageError>(!first.empty(), "search: evolution needs a start, found none.");
  journal.objective(first.front(), journal.last_rung());  // found even where the race ends early
  auto parent = race(journal, first, {.survivors = 1}).front();
  for (std::int64_t generation = 0; generation < options.generations; ++generation) {
    std::vector<State> offspring;
    for (std::int64_t i = 0; i < options.offspring; ++i) {
      base::Random random(options.seed, base::stream_of(base::join("evolution/", generation, "/", i)));
      const auto a = random.next_below(3), b = random.next_below(3);
      offspring.push_back(
          level_switched(space, parent.state, 1 + static_cast<std::int64_t>(std::min(a, b)), random));
    }
    const auto winner =
        race(journal, offspring, {.survivors = options.survivors, .incumbent = &parent.state}).front();
    if (winner.rung == journal.last_rung() && winner.objective <= parent.objective) parent = winner;
  }
}

}  // namespace retort::search
