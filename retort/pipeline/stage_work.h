#pragma once
// How much a stage computes: what its dry run says, and from which its time is planned.

#include <c10/core/ScalarType.h>

#include <optional>
#include <span>
#include <string>

#include "retort/architecture/config.h"
#include "retort/calibrate/options.h"
#include "retort/eval/options.h"
#include "retort/train/options.h"

namespace retort::pipeline {

/// What a stage reads and passes through its models.
struct StageWork {
  std::string sentence;  ///< without its end
  /// Of products that take as long, by what the stage needs and by what it may come to.
  double least_flops = 0, most_flops = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of these products
};

/// Of a training stage: its steps, and the losses on held-out text of so many sources.  `teacher` may be
/// null.
StageWork training_work(const train::TrainOptions& options, const architecture::Config& student,
                        const architecture::Config* teacher, std::int64_t sources, c10::ScalarType dtype);

/// Of models that score the held-out text of so many sources.  Nothing where all of it counts, which is yet
/// unread.
std::optional<StageWork> scoring_work(const eval::EvaluateOptions& options,
                                      std::span<const architecture::Config> models, std::int64_t sources);

/// Of a profile stage over so many tokens.
StageWork profiling_work(const calibrate::ProfileOptions& options, const architecture::Config& model,
                         std::int64_t text_tokens);

}  // namespace retort::pipeline
