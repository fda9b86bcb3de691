#include "retort/pipeline/stage_work.h"

#include <cmath>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/train/step_flops.h"
#include "retort/train/written_texts.h"

namespace retort::pipeline {
namespace {

std::string tokens(double count) {
  return base::human_count(count) + " tokens";
}

// That the student writes at most.
double written_tokens(const train::TrainOptions& options, std::int64_t steps) {
  const auto& how = options.on_policy;
  const auto texts = how.share *
                     static_cast<double>(steps * options.batch.sequences * options.batch.accumulate) *
                     static_cast<double>(train::texts_of_sequence(how, options.packing.sequence_length));
  return std::floor(texts) * static_cast<double>(how.max_new_tokens);
}

// A token of a few texts together takes longer than its share of a pass over many: an estimate.
constexpr double kWritingFactor = 4;

}  // namespace

StageWork training_work(const train::TrainOptions& options, const architecture::Config& student,
                        const architecture::Config* teacher, std::int64_t sources, c10::ScalarType dtype) {
  const auto length = options.packing.sequence_length;
  const auto step = options.batch.sequences * options.batch.accumulate * length;
  const auto steps = (options.tokens + step - 1) / step;
  const auto learned = static_cast<double>(steps * step);
  // Losses on held-out text stand before the first step, and behind the last.
  const auto every = options.evaluate_every_steps;
  const auto evaluations = every > 0 ? 1 + (steps + every - 1) / every : 0;
  const auto scored = static_cast<double>(evaluations * options.evaluate_tokens * sources);
  const double forward = architecture::flops_per_token(student, length);
  const double least =
      learned * train::step_flops(student, teacher, teacher != nullptr, length).all + scored * forward;
  // Blocks whose inputs alone are kept compute forward twice.
  const double again = options.recompute == train::Recompute::never ? 0 : learned * forward;
  const auto written = written_tokens(options, steps);
  return {base::join("learns from ", tokens(learned), " in ", steps, " steps",
                     written > 0 ? base::join(", of which the student writes up to ", tokens(written)) : ""),
          least, least + again + kWritingFactor * written * forward, dtype};
}

std::optional<StageWork> scoring_work(const eval::EvaluateOptions& options,
                                      std::span<const architecture::Config> models, std::int64_t sources) {
  if (options.tokens == 0) return {};
  const auto scored = static_cast<double>(options.tokens * sources);
  double flops = 0;
  for (const auto& model : models) flops += scored * architecture::flops_per_token(model, options.context);
  return StageWork{base::join(models.size(), " models score ", tokens(scored), " each"), flops, flops};
}

// The sums behind Hessians take about as long as the blocks themselves (benchmarks/stages).
StageWork profiling_work(const calibrate::ProfileOptions& options, const architecture::Config& model,
                         std::int64_t text_tokens) {
  const auto pass =
      static_cast<double>(text_tokens) * architecture::flops_per_token(model, options.sequence_length);
  return {base::join("reads ", tokens(static_cast<double>(text_tokens)), " of calibration text"), pass,
          2 * pass};
}

}  // namespace retort::pipeline
