#include "retort/pipeline/text_checks.h"

#include "retort/data/countable_text.h"
#include "retort/io/quote.h"

namespace retort::pipeline {

void require_text_to_train(const PlanContext& context, const recipe::Stage& stage, const ModelText& text) {
  const auto& options = std::get<train::TrainOptions>(stage.options);
  for (const auto& source : context.recipe.sources(stage)) {
    data::require_targets(source, data::Split::training, options.packing, data::Targets::learned,
                          text.encode(), text.special);
    if (options.evaluate_every_steps > 0)
      data::require_targets(source, data::Split::held_out, options.packing, data::Targets::measured,
                            text.encode(), text.special);
  }
}

void require_text_to_measure(const PlanContext& context, const recipe::Stage& stage, const ModelText& text) {
  // In windows over the joined text the token before a document predicts its first.
  const data::PackingOptions joined{.attend_across_documents = true};
  for (const auto& source : context.recipe.sources(stage))
    data::require_targets(source, data::Split::held_out, joined, data::Targets::measured, text.encode(),
                          text.special);
}

std::string describe_begin_of_text(data::Bos bos, const ModelText& text) {
  const auto id = data::begin_of_text(bos, text.special);
  if (id >= 0)
    return base::join("documents begin with the begin-of-text token ",
                      io::quote(text.tokenizer.id_to_token(id)), " (id ", id, ")");
  return bos == data::Bos::never ? "documents begin with no begin-of-text token"
                                 : "documents begin with no begin-of-text token, because the model has none";
}

base::Json begin_of_text_json(data::Bos bos, const ModelText& text) {
  const auto id = data::begin_of_text(bos, text.special);
  return id >= 0 ? base::Json(id) : base::Json(nullptr);
}

void say_skipped(const std::string& stage, const std::string& source, std::int64_t skipped_lines,
                 record::Observer& observer) {
  if (skipped_lines > 0)
    observer.message(record::Level::warning,
                     base::join(stage, ": ", skipped_lines, " bad lines or documents of data.", source,
                                " were skipped (skip_bad_lines)"));
}

}  // namespace retort::pipeline
