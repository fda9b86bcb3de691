#pragma once
// What a step's products and attention cost by the formulas of its models, per token.  What is computed again
// does not count.

#include "retort/architecture/config.h"
#include "retort/record/metrics_line.h"

namespace retort::train {

/// Of one token in a sequence of so many, as every operation adds and multiplies.
struct StepFlops {
  double all = 0;
  record::NamedNumbers by_phase, by_operation;
};

/// `teacher` may be null; `teacher_logits`: a loss reads its logits.
StepFlops step_flops(const architecture::Config& student, const architecture::Config* teacher,
                     bool teacher_logits, std::int64_t sequence_tokens);

}  // namespace retort::train
