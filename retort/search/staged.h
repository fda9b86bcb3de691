#pragma once
// The order of Dickmann et al. (2025), section 3.5: without inactive channels, first blocks go, then
// channels. A Tabu search from there is the paper's last stage.

#include <cstddef>
#include <vector>

#include "retort/search/greedy.h"

namespace retort::search {

struct StagedOptions {
  State start = {};                                   ///< without what is inactive; empty: the whole model
  std::vector<std::vector<std::size_t>> blocks = {};  ///< units that go together while blocks go
  std::vector<std::size_t> channels = {};             ///< units that rise afterwards; where they cannot, all
  double block_share = 0.5;   ///< share of what is to go that goes as blocks; the paper names none
  GreedyOptions greedy = {};  ///< its budget is for the blocks too; `start` and `units` are set by the search
};

/// Blocks and then channels go by the least rise per parameter, measured again after each step.  Returns the
/// state; it is feasible.  Throws as greedy.
State staged(Journal& journal, Proxy proxy, const StagedOptions& options);

}  // namespace retort::search
