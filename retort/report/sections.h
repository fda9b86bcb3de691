#pragma once
// The parts of the page, in its order; each is empty when the run has nothing for it.

#include "retort/record/run_contents.h"
#include "retort/report/charts.h"
#include "retort/report/html.h"

namespace retort::report {

using Run = record::RunContents;
using Stage = record::StageContents;

/// The name of the run directory: what the page is called.
std::string title_of(const Run& run);

Html headline(const Run& run);
Html pipeline(const Run& run);
/// Scores table, bars per model and source.
Html scores(const Run& run, Palette& palette);
/// Accuracy on evaluation tasks, and how much of the teacher's is left.
Html tasks(const Run& run, Palette& palette);
/// Quality against parameters, a line for each method of pruning.
Html trade_offs(const Run& run);
/// Held-out loss of all training stages, then the losses of each.
Html training(const Run& run, Palette& palette);
/// What the ranks of a stage exchanged, by operation and size; empty for one rank.
Html collectives(const Stage& stage);
/// Magnitudes, inactive and massive channels of each block, from profile stages.
Html profiles(const Run& run);
/// The picture of kept and dropped blocks and channels, and the log of decisions.
Html pruning(const Run& run);
/// Models that were distilled for a while, and which one was taken.
Html selection(const Run& run);
Html sparsity(const Run& run);
/// What export stages wrote, and for whom.
Html exports(const Run& run);
/// Time and peak memory of every stage.
Html costs(const Run& run);
/// What the ranks exchanged in the stages that do not train.
Html exchanged(const Run& run);
/// Planned against measured memory of the training stages, by purpose.
Html memory(const Run& run);
/// Text that models wrote for others to learn from.
Html written_texts(const Run& run);
/// Text that the models wrote, side by side.
Html generated(const Run& run);
Html recipe(const Run& run);
Html provenance(const Run& run);

struct Section {
  const char* id;
  const char* title;
  Html (*body)(const Run& run, Palette& palette);
};

/// In the order of the page.  A kind of stage that has something of its own to show has a row here.
inline constexpr Section kSections[] = {
    {"scores", "Scores", scores},
    {"tasks", "Tasks", tasks},
    {"trade-off", "Size and quality", [](const Run& run, Palette&) { return trade_offs(run); }},
    {"training", "Training", training},
    {"profile", "Activations", [](const Run& run, Palette&) { return profiles(run); }},
    {"pruning", "What was pruned", [](const Run& run, Palette&) { return pruning(run); }},
    {"selection", "Models after a short distillation",
     [](const Run& run, Palette&) { return selection(run); }},
    {"sparsity", "2:4 sparsity", [](const Run& run, Palette&) { return sparsity(run); }},
    {"exports", "Handed out", [](const Run& run, Palette&) { return exports(run); }},
    {"memory", "Time and memory",
     [](const Run& run, Palette&) { return costs(run) + memory(run) + exchanged(run); }},
    {"text", "Generated text", [](const Run& run, Palette&) { return generated(run); }},
    {"written", "Text to learn from", [](const Run& run, Palette&) { return written_texts(run); }},
    {"recipe", "Recipe", [](const Run& run, Palette&) { return recipe(run); }},
    {"provenance", "Provenance", [](const Run& run, Palette&) { return provenance(run); }},
};

/// What `body` shows of each stage of this kind that has a result, under its name where there are several.
Html each_stage(const Run& run, std::string_view kind, Html (*body)(const Stage& stage));

/// Null when the run has no such stage.
const Stage* stage_of(const Run& run, std::string_view name);
/// The parameters of a stage's model as far as the run tells.
Number parameters_of(const Run& run, const Stage& stage);
bool is_training(const Stage& stage);
/// Whether its result has scores of models.
inline bool measures_models(const Stage& stage) {
  return stage.kind == "evaluate";
}
/// Whether later stages may start from what it made: the others look at a model, or hand it out.
inline bool makes_model(const Stage& stage) {
  return stage.kind != "evaluate" && stage.kind != "profile" && stage.kind != "export";
}

}  // namespace retort::report
