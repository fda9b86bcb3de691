// What `retort verify RECIPE` says before anything has run.
#include <ATen/ATen.h>

#include <set>
#include <vector>

#include "retort/base/error.h"
#include "retort/pipeline/known_models.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/publish/form.h"
#include "retort/publish/load_table.h"
#include "retort/recipe/stage_kinds.h"

namespace retort::pipeline {
namespace {

using base::Json;

// What the stages of a model's line do to it, in the words of the table of programs.
std::set<std::string_view> changes_of(const recipe::Recipe& recipe, const KnownModels& models,
                                      const std::string& name) {
  std::set<std::string_view> changes;
  const auto* stage = recipe.find_stage(name);
  if (!stage) return models.config(name)->uniform() ? changes : std::set{publish::kPerLayer};
  for (const auto& origin : stage->origins()) changes.merge(changes_of(recipe, models, origin));
  if (recipe::traits_of(stage->kind).makes_sparse) changes.insert(publish::kTwoFour);
  if (const auto* prune = std::get_if<prune::PruneOptions>(&stage->options)) {
    if (prune->hidden) changes.insert(publish::kHidden);
    switch (prune->units) {
      case prune::Units::uniform:
        changes.merge(std::set{publish::kBlocks, publish::kHeads, publish::kChannels});
        break;
      case prune::Units::blocks:
        changes.insert(publish::kBlocks);
        break;
      case prune::Units::sub_blocks:
        changes.insert(publish::kSubBlocks);
        break;
      case prune::Units::per_layer:
        changes.insert(publish::kPerLayer);
        break;
    }
  }
  return changes;
}

Json foreseen(const recipe::Recipe& recipe, const KnownModels& models, const std::string& name,
              const publish::ExportOptions& options) {
  try {
    const auto config = models.config_of_line(name);
    auto changes = changes_of(recipe, models, name);
    const bool differ = changes.contains(publish::kPerLayer) || changes.contains(publish::kSubBlocks);
    const auto form = publish::foreseen_form(options, config, differ, models.tokenizer_of_line(name));
    if (changes.empty()) changes.insert(publish::kWhole);
    const std::vector<std::string_view> listed(changes.begin(), changes.end());
    return {{"stage", name},
            {"is_written", true},
            {"as", form},
            {"seen", publish::seen_to_load(config.architecture, listed, base::word(options.program)).said}};
  } catch (const base::ModelError& error) {
    return {{"stage", name}, {"is_written", false}, {"reason", error.what()}};
  }
}

}  // namespace

Json foresee(const recipe::Recipe& recipe, const publish::ExportOptions& options) {
  Json models = Json::array();
  translate_torch_errors([&] {
    const auto known = KnownModels(recipe).unpruned();
    for (const auto& stage : recipe.stages)
      if (recipe::traits_of(stage.kind).makes_model)
        models.push_back(foreseen(recipe, known, stage.name, options));
  });
  return {{"program", base::word(options.program)}, {"models", models}};
}

}  // namespace retort::pipeline
