#pragma once
// The learning rate of a model that the recipe gives none for.

#include <cstdint>

#include "retort/optim/options.h"

namespace retort::optim {

enum class StartedFrom { trained_weights, random_weights };

/// The options with `lr` filled in where it was left out: 0.12 / hidden_size for weights that were trained
/// before, ten times as much for random ones.  A wider model takes smaller steps, since more features add up
/// in each product (Yang et al. 2022, arXiv 2203.03466, table 8: AdamW's rate of a matrix goes with 1 /
/// width). The constants are measured: benchmarks/learning_rates/RESULTS.md.
OptimOptions with_learning_rate(OptimOptions options, std::int64_t hidden_size, StartedFrom start);

}  // namespace retort::optim
