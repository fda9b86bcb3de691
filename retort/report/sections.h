#pragma once
// The parts of the page, in its order; each is empty when the run has nothing for it.

#include "retort/report/charts.h"
#include "retort/report/html.h"
#include "retort/report/run_files.h"

namespace retort::report {

/// The recipe's name: what the page is called.
std::string title_of(const RunFiles& run);

Html headline(const RunFiles& run);
Html pipeline(const RunFiles& run);
/// Scores table, bars per model and source.
Html scores(const RunFiles& run, Palette& palette);
/// Quality against parameters, a line for each method of pruning.
Html trade_offs(const RunFiles& run);
/// Held-out loss of all training stages, then the losses of each.
Html training(const RunFiles& run, Palette& palette);
/// Magnitudes, inactive and massive channels of each block, from profile stages.
Html profiles(const RunFiles& run);
/// The picture of kept and dropped blocks and channels, and the log of decisions.
Html pruning(const RunFiles& run);
/// Models that were distilled for a while, and which one was taken.
Html selection(const RunFiles& run);
Html sparsity(const RunFiles& run);
/// Time and peak memory of every stage.
Html costs(const RunFiles& run);
/// Planned against measured memory of the training stages.
Html memory(const RunFiles& run);
/// Text that the models wrote, side by side.
Html generated(const RunFiles& run);
Html recipe(const RunFiles& run);
Html provenance(const RunFiles& run);

/// The parameters of a stage's model as far as the run tells.
Number parameters_of(const RunFiles& run, const Stage& stage);
bool is_training(const Stage& stage);

}  // namespace retort::report
