#pragma once
// Random search and evolution, the baselines that a search has to beat.

#include <cstdint>
#include <vector>

#include "retort/search/journal.h"

namespace retort::search {

/// Feasible states drawn independently, each evaluated at the last rung, until the budget or `states` is used
/// up, or a hundred draws in a row find nothing new.
void random_search(Journal& journal, std::uint64_t seed, std::int64_t states);

struct EvolutionOptions {
  std::uint64_t seed = 0;
  std::int64_t generations = 1000;  ///< upper limit; the journal's budget ends most searches before
  std::int64_t offspring = 16;      ///< number of offspring in a generation
  std::int64_t starts = 32;         ///< random states that compete to be the first parent
  std::int64_t survivors = 1;       ///< offspring that meet their parent at the last rung, at most
};

/// One parent; each offspring is the parent after min(a, b) level switches, a and b uniform in 1 to 3; they
/// race, and the winner replaces a parent that is not better; offspring that are all worse beyond chance end
/// the race early.  `starts`: more competitors for the first parent.  Source: EvoPress (Sieberling et al.
/// 2024), algorithm 1.
void evolution(Journal& journal, const std::vector<State>& starts, const EvolutionOptions& options);

}  // namespace retort::search
