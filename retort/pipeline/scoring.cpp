#include "retort/pipeline/scoring.h"

#include "retort/model/dtype.h"
#include "retort/model/weights.h"

namespace retort::pipeline {

LoadedModel load_for_scoring(const Context& context, const std::string& name) {
  const auto dtype = model::parse_scoring_dtype("auto", context.device);
  LoadedModel model{.path = context.model_path(name), .parameters = {}, .subject = {}};
  model.parameters = shard::resident_parameters(model::load_weights(model.path, dtype, context.device),
                                                shard::Use::frozen, dtype);
  const auto text = read_model_text(model.path, model.parameters->config());
  model.subject = std::make_unique<eval::Subject>(name, *model.parameters, text.tokenizer.vocab_size());
  return model;
}

eval::ModelScores held_out_scores(const Context& context, const recipe::Stage& stage,
                                  const eval::EvaluateOptions& options, const LoadedModel& model,
                                  const LoadedModel* teacher) {
  const auto text = read_model_text(model.path, model.parameters->config());
  auto scores = eval::describe_model(*model.subject, model.path);
  for (const auto& source : context.recipe.sources(stage)) {
    const auto windows = eval::open_windows(source, data::Split::held_out,
                                            {.windowing = options.windows,
                                             .context = options.context,
                                             .tokens = options.tokens,
                                             .bos = text.special.bos >= 0},
                                            text.encode(), text.special);
    scores.sources.push_back(eval::evaluate_source(*model.subject, teacher ? teacher->subject.get() : nullptr,
                                                   source.name, *windows));
  }
  return scores;
}

}  // namespace retort::pipeline
