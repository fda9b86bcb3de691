#pragma once
// Options of the search that goes step by step.

#include "retort/prune/options.h"

namespace retort::test {

inline prune::PruneOptions stepwise_options() {
  prune::PruneOptions options;
  options.units = prune::Units::uniform;
  options.search.method = prune::SearchMethod::greedy;
  return options;
}

}  // namespace retort::test
