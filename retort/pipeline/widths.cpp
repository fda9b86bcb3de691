#include "retort/pipeline/widths.h"

#include <vector>

#include "retort/base/error.h"
#include "retort/prune/target.h"

namespace retort::pipeline {
namespace {

std::vector<prune::PruneOptions*> prune_options(recipe::Recipe& recipe) {
  std::vector<prune::PruneOptions*> found;
  for (auto& stage : recipe.stages)
    if (auto* options = std::get_if<prune::PruneOptions>(&stage.options)) found.push_back(options);
  return found;
}

// What the run began with, else that of its model.  A model that is not there yet, or not any more, is no
// matter of widths: who needs it says so.
std::int64_t usual_multiple_of(const recipe::Stage& stage, const KnownModels& models) {
  if (const auto begun = models.recorded(stage.name); begun.is_object() && begun.contains("width_multiple"))
    return begun.at("width_multiple").get<std::int64_t>();
  try {
    return prune::usual_width_multiple(models.config_of_origin(stage.from));
  } catch (const base::Error&) {
    return prune::kUsualWidthMultiple;
  }
}

}  // namespace

void settle_widths(recipe::Recipe& recipe, const KnownModels& models) {
  for (auto& stage : recipe.stages)
    if (auto* options = std::get_if<prune::PruneOptions>(&stage.options);
        options && options->width_multiple == prune::kWidthMultipleOfModel)
      options->width_multiple = usual_multiple_of(stage, models);
}

void share_widths(recipe::Recipe& recipe, comm::Group& group) {
  auto widths = base::Json::array();
  for (auto* options : prune_options(recipe)) widths.push_back(options->width_multiple);
  auto text = widths.dump();
  group.share(text);
  widths = base::Json::parse(text);
  std::size_t stage = 0;
  for (auto* options : prune_options(recipe)) widths[stage++].get_to(options->width_multiple);
}

}  // namespace retort::pipeline
