#include "retort/pipeline/stages.h"

namespace retort::pipeline {

TextUse text_use_of(const recipe::Stage& stage) {
  const auto text_use = functions_of(stage.kind).text_use;
  return text_use ? text_use(stage) : TextUse();
}

ResolvedStage resolved(const Context& context, const recipe::Stage& stage, const ResolvedStage* before) {
  ResolvedStage resolved;
  context.group.agree([&] {
    if (before) {
      resolved = *before;
      return;
    }
    const auto models = KnownModels(context.recipe, record::RunFiles(context.directory.path())).as_made();
    resolved = functions_of(stage.kind).resolve(plan_context(context, models), stage);
    for (const auto& length : resolved.lengths)
      for (const auto& name : stage.models_read())
        require_context(stage.name, length.key, length.tokens, models.config_of_line(name));
    if (resolved.memory) shard::require_fits(*resolved.memory, context.place.bytes_of_rank());
  });
  return resolved;
}

}  // namespace retort::pipeline
