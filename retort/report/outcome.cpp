#include "retort/report/outcome.h"

#include <algorithm>

#include "retort/report/fields.h"
#include "retort/report/numbers.h"
#include "retort/report/report.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

bool goes_on(const Run& run, const std::string& name) {
  return std::ranges::any_of(run.stages, [&](const Stage& stage) {
    return makes_model(stage) && text(stage.recipe, keys::kFrom) == name;
  });
}

Number perplexity(const Json& model) {
  return number(field(model, keys::kMean), keys::kPerplexity);
}

// A control that learns without a teacher also ends a chain, but it is not what the chain was made for.
int rank(const Run& run, const Json& model) {
  const auto* stage = stage_of(run, text(model, keys::kName));
  if (!stage) return 0;
  if (goes_on(run, stage->name)) return 1;
  return text(stage->recipe, keys::kTeacher).empty() ? 2 : 3;
}

struct Evaluated {
  const Json* teacher = nullptr;
  const Json* last = nullptr;
};

Evaluated evaluated(const Run& run, const Stage& stage) {
  Evaluated found;
  const auto teacher = text(stage.result, keys::kTeacher);
  for (const Json& model : elements(field(stage.result, keys::kModels))) {
    if (text(model, keys::kName) == teacher) {
      found.teacher = &model;
      continue;
    }
    if (!perplexity(model)) continue;
    const int mine = rank(run, model), best = found.last ? rank(run, *found.last) : -1;
    const bool of_a_kind = mine == best && mine == 3;
    if (of_a_kind ? *perplexity(model) < *perplexity(*found.last) : mine >= best) found.last = &model;
  }
  return found;
}

// The best of the models that `last` was made from, where it is better than `last` itself.
const Json* better_before(const Run& run, const Stage& evaluation, const Json& last, const Json& teacher) {
  const Json* best = nullptr;
  const auto* stage = stage_of(run, text(last, keys::kName));
  for (std::size_t steps = 0; stage && steps < run.stages.size(); ++steps) {
    const auto from = text(stage->recipe, keys::kFrom);
    if (from == text(teacher, keys::kName)) break;
    for (const Json& model : elements(field(evaluation.result, keys::kModels)))
      if (text(model, keys::kName) == from && perplexity(model) &&
          *perplexity(model) < *perplexity(best ? *best : last))
        best = &model;
    stage = stage_of(run, from);
  }
  return best;
}

std::string sentence(const Run& run, const Stage& evaluation, const Json& last, const Json& teacher) {
  const auto size = number(last, keys::kParameters), whole = number(teacher, keys::kParameters);
  std::string text = ", the model that this run ends with, has " + count(size) + " parameters, " +
                     percent(*size / *whole, 0) + " of its teacher\u2019s " + count(whole) +
                     ". Its held-out perplexity is " + significant(perplexity(last)) + " against " +
                     significant(perplexity(teacher));
  if (const auto recovery = number(field(last, keys::kMean), keys::kRecovery))
    text += ", a recovery of " + percent(recovery);
  text += ".";
  if (const Json* better = better_before(run, evaluation, last, teacher))
    text += " Of its own chain " + label_of(*better) + " has a lower one, " +
            significant(perplexity(*better)) + ".";
  return text;
}

}  // namespace

Outcome outcome_of(const Run& run) {
  for (auto stage = run.stages.rbegin(); stage != run.stages.rend(); ++stage) {
    if (!measures_models(*stage)) continue;
    const auto [teacher, last] = evaluated(run, *stage);
    if (!teacher || !last || !perplexity(*teacher)) continue;
    const auto size = number(*last, keys::kParameters), whole = number(*teacher, keys::kParameters);
    if (size && whole && *whole > 0) return {label_of(*last), sentence(run, *stage, *last, *teacher)};
  }
  return {};
}

std::string outcome(const base::Path& run_directory) {
  const auto [model, sentence] = outcome_of(record::read_run(run_directory));
  return model.empty() ? "" : model + sentence + "\n";
}

}  // namespace retort::report
