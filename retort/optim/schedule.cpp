#include "retort/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace retort::optim {

double schedule_factor(const OptimOptions& options, std::int64_t step, std::int64_t steps) {
  const auto warmup =
      options.warmup_steps >= 0
          ? options.warmup_steps
          : static_cast<std::int64_t>(std::ceil(options.warmup_fraction * static_cast<double>(steps)));
  if (step <= warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  if (options.schedule == ScheduleKind::constant) return 1;
  const double progress =
      static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, progress)));
  return options.final_lr_fraction + (1 - options.final_lr_fraction) * cosine;
}

}  // namespace retort::optim
