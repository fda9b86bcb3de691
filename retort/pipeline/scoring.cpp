#include "retort/pipeline/scoring.h"

#include "retort/eval/memory_plan.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/pipeline/text_checks.h"

namespace retort::pipeline {

LoadedModel load_for_scoring(const Context& context, const std::string& name) {
  const auto dtype = model::parse_scoring_dtype("auto", context.place.device);
  LoadedModel model{.path = context.model_path(name), .weights = {}, .subject = {}};
  model::UnitSource source;
  std::int64_t num_tokens = 0;
  context.group.agree([&] {
    source = model::open_weights(model.path);
    num_tokens = read_model_text(model.path, source.config).tokenizer.vocab_size();
  });
  model.weights = shard::read_only_model(source, dtype, context.place.device, context.group);
  model.subject = std::make_unique<eval::Subject>(name, *model.weights.parameters, num_tokens);
  return model;
}

shard::MemoryPlan scoring_plan(const architecture::Config& model, const architecture::Config* teacher,
                               std::int64_t context, at::Device device, const shard::RankCounts& ranks) {
  const auto item = static_cast<std::int64_t>(at::elementSize(model::parse_scoring_dtype("auto", device)));
  auto plan = eval::plan_scoring(model, teacher, item, context, ops::path_of(device));
  const auto layout = shard::read_only_layout(ranks);
  for (const auto* weights : {eval::kModelWeights, eval::kTeacherWeights}) plan.share(weights, layout.ranks);
  if (layout.gathers)
    plan.items.push_back({"units of other ranks", eval::gathered_bytes(model, teacher, item)});
  return plan;
}

eval::ModelScores held_out_scores(const Context& context, const recipe::Stage& stage,
                                  const eval::EvaluateOptions& options, const LoadedModel& model,
                                  const LoadedModel* teacher, eval::TeacherStates* teacher_states) {
  const auto text = read_model_text(model.path, model.weights.parameters->config());
  auto scores = eval::describe_model(*model.subject, model.path);
  for (const auto& source : context.recipe.sources(stage)) {
    std::unique_ptr<eval::Windows> windows;
    context.lead([&] {
      windows = eval::open_windows(
          source, data::Split::held_out,
          {.windowing = options.windows, .context = options.context, .tokens = options.tokens}, text.encode(),
          text.special);
    });
    scores.sources.push_back(
        eval::evaluate_source(*model.subject, teacher ? teacher->subject.get() : nullptr, source.name,
                              windows.get(), {.group = &context.group, .teacher_states = teacher_states}));
    if (windows) say_skipped(stage.name, source.name, windows->skipped_lines(), context.observer);
  }
  return scores;
}

}  // namespace retort::pipeline
