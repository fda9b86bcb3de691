#pragma once
// What a recipe may say about the optimizer.

#include <cstdint>
#include <string>

#include "retort/base/words.h"

namespace retort::optim {

enum class ScheduleKind { cosine, constant };
constexpr auto words_of(ScheduleKind) {
  return base::words<ScheduleKind::constant>("cosine", "constant");
}

struct OptimOptions {
  double lr = -1;            ///< negative: by the width of the model, see learning_rate.h
  double embedding_lr = -1;  ///< of embedding and head; negative: same as lr
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1.0e-8;
  double weight_decay = 0.0;  ///< decoupled; matrices only, never norms
  double clip_norm = 1.0;     ///< global gradient norm; 0: no clipping
  ScheduleKind schedule = ScheduleKind::cosine;
  double warmup_fraction = 0.02;   ///< of all steps
  std::int64_t warmup_steps = -1;  ///< instead of the fraction; negative: use the fraction
  double final_lr_fraction = 0.1;  ///< of lr, reached at the last step (cosine)
};

}  // namespace retort::optim
