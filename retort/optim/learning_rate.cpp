#include "retort/optim/learning_rate.h"

namespace retort::optim {

OptimOptions with_learning_rate(OptimOptions options, std::int64_t hidden_size, StartedFrom start) {
  constexpr double kTrained = 0.12, kRandom = 1.2;
  if (options.lr < 0)
    options.lr = (start == StartedFrom::trained_weights ? kTrained : kRandom) / double(hidden_size);
  return options;
}

}  // namespace retort::optim
