#include "retort/pipeline/text_checks.h"

#include "retort/data/countable_text.h"
#include "retort/io/quote.h"

namespace retort::pipeline {

void require_text_to_train(const PlanContext& context, const recipe::Stage& stage, const ModelText& text) {
  const auto& options = std::get<train::TrainOptions>(stage.options);
  auto cut = options.packing;  // held-out documents are measured whatever their length
  cut.cut = data::Cut::anywhere;
  const auto sources = context.recipe.sources(stage);
  double weights = 0;
  for (const auto& source : sources) weights += source.weight;
  for (const auto& source : sources) {
    data::require_targets(source, data::Split::training, options.packing, data::Targets::learned,
                          text.encode(), text.special);
    const double share = source.weight / weights * static_cast<double>(options.tokens);
    if (source.epochs > 0)
      data::require_tokens(source, static_cast<std::int64_t>(share), options.packing, text.encode(),
                           text.special);
    if (options.evaluate_every_steps > 0)
      data::require_targets(source, data::Split::held_out, cut, data::Targets::measured, text.encode(),
                            text.special);
  }
}

void require_text_to_measure(const PlanContext& context, const recipe::Stage& stage, const ModelText& text) {
  // In windows over the joined text the token before a document predicts its first.
  const data::PackingOptions joined{.attend_across_documents = true, .cut = data::Cut::anywhere};
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

void say_passed_over(const std::string& stage, const data::SourceStatistics& source,
                     const data::PackingOptions& packing, record::Observer& observer) {
  const auto say = [&](std::int64_t count, const std::string& what) {
    if (count > 0)
      observer.message(record::Level::warning,
                       base::join(stage, ": ", count, " documents of data.", source.name, " ", what));
  };
  say(source.too_long, base::join("were left out, because they have more than the ", packing.sequence_length,
                                  " tokens of a sequence (packing.sequence_length)"));
  say(source.unanswered, "were left out, because they have no answer to learn");
  say(source.refused, "were left out, because the chat template refuses them (skip_bad_lines)");
}

void say_skipped(const std::string& stage, const std::string& source, std::int64_t skipped_lines,
                 record::Observer& observer) {
  if (skipped_lines > 0)
    observer.message(record::Level::warning,
                     base::join(stage, ": ", skipped_lines, " bad lines or documents of data.", source,
                                " were skipped (skip_bad_lines)"));
}

}  // namespace retort::pipeline
