#include "retort/recipe/binding.h"

#include <algorithm>
#include <unordered_set>

#include "retort/recipe/bind_options.h"
#include "retort/recipe/stage_kinds.h"
#include "retort/recipe/suggestion.h"

namespace retort::recipe {
namespace {

bool is_name(const std::string& text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), allowed);
}

/// Names become directories and parts of dotted keys.
void check_name(Binder& b, const std::string& name) {
  if (!is_name(name)) b.mistake("name", "'" + name + "': expected 1 to 64 letters, digits, _ or -");
}

void check_data(Binder& b, const Stage& stage, const Recipe& recipe) {
  for (const std::string& name : stage.data) {
    if (std::ranges::find(recipe.data, name, &data::SourceOptions::name) != recipe.data.end()) continue;
    if (std::ranges::find(recipe.stages, name, &Stage::name) != recipe.stages.end()) {
      b.mistake("data", "'" + name + "' is a stage and no source of text; a source with generated: {model: " +
                            name + "} has text that its model writes");
      continue;
    }
    std::vector<std::string> known;
    for (const auto& source : recipe.data) known.push_back(source.name);
    b.mistake("data", "'" + name + "' is not among the sources under data" + did_you_mean(name, known));
  }
}

void check_repeated(Binder& b, const char* key, const std::vector<std::string>& names) {
  std::unordered_set<std::string> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second) b.mistake(key, "'" + name + "' is named twice; name it once");
}

void bind_text(Binder& b, Stage& stage, const Recipe& recipe) {
  b.texts("data", stage.data, {.doc = "names of sources", .required = true});
  check_data(b, stage, recipe);
  check_repeated(b, "data", stage.data);
}

// Whether the budgets of a training stage's sources and its own fit together.
void check_budgets(Binder& b, const Stage& stage, const Recipe& recipe) {
  const auto* training = std::get_if<train::TrainOptions>(&stage.options);
  if (!training || !b.fills()) return;
  std::int64_t budgets = 0;
  bool weighted = false;
  for (const std::string& name : stage.data) {
    const auto source = std::ranges::find(recipe.data, name, &data::SourceOptions::name);
    if (source == recipe.data.end()) return;
    budgets += source->tokens;
    weighted |= source->tokens == 0;
  }
  if (budgets == 0 || training->tokens == 0) return;
  const auto found = std::to_string(budgets) + " of " + std::to_string(training->tokens);
  if (weighted && budgets >= training->tokens)
    b.mistake("tokens", "its sources ask for " + found +
                            " tokens, which leaves none for those without tokens; "
                            "raise it");
  if (!weighted && budgets != training->tokens)
    b.mistake("tokens", "its sources ask for " + found +
                            " tokens; make both the same, or give one source a "
                            "weight in place of tokens");
}

void bind_stage_kind(Binder& b, Recipe& recipe, std::size_t index, const StageTraits& traits) {
  Stage& stage = recipe.stages[index];
  stage.kind = traits.kind;
  if (b.fills()) stage.options = traits.defaults(recipe.seed);
  StageKeys keys(b, recipe, index);
  traits.bind_models(keys);
  if (traits.reads_text) bind_text(b, stage, recipe);
  check_repeated(b, "models", stage.models);
  traits.bind_options(b, stage.options);
  if (traits.reads_text) check_budgets(b, stage, recipe);
}

void bind_stage(Binder& b, Recipe& recipe, std::size_t index) {
  Stage& stage = recipe.stages[index];
  b.text("name", stage.name, {.doc = "of the stage and of the model that it makes", .required = true});
  if (!stage.name.empty()) check_name(b, stage.name);
  for (std::size_t i = 0; i < index; ++i)
    if (!stage.name.empty() && recipe.stages[i].name == stage.name)
      b.mistake("name", "'" + stage.name + "' names an earlier stage already");
  auto kind = static_cast<std::size_t>(stage.kind);
  Words words;
  for (const auto& traits : stage_kinds()) words.push_back(traits.name);
  b.kind("kind", kind, words, {.doc = "what the stage does", .required = true},
         [&](Binder& inner, std::size_t k) { bind_stage_kind(inner, recipe, index, stage_kinds()[k]); });
}

// What is wrong with the stage that is to write a source, or nothing.
std::string wrong_with_writer(const data::SourceOptions& source, const Recipe& recipe) {
  const auto& model = source.generated.model;
  std::vector<std::string> names;
  for (const auto& stage : recipe.stages) names.push_back(stage.name);
  const auto writer = std::ranges::find(names, model);
  if (writer == names.end())
    return "'" + model + "' is no stage and no directory (write ./" + model + " for a directory)" +
           did_you_mean(model, names);
  const auto index = writer - names.begin();
  const auto& traits = traits_of(recipe.stages[static_cast<std::size_t>(index)].kind);
  if (!traits.makes_model)
    return "stage '" + model + "' is of kind " + std::string(traits.name) + " and makes no model";
  for (auto stage = recipe.stages.begin(); stage - recipe.stages.begin() <= index; ++stage)
    if (std::ranges::count(stage->data, source.name) > 0)
      return "stage '" + stage->name + "' reads the text, and '" + model +
             "' does not come before it; stages run in the order of the file";
  return {};
}

// Known when all stages are.  A directory has a slash in it.
void check_writers(Binder& b, const Recipe& recipe) {
  for (const auto& source : recipe.data) {
    const auto& model = source.generated.model;
    if (model.empty() || model.find('/') != std::string::npos) continue;
    if (const auto wrong = wrong_with_writer(source, recipe); !wrong.empty())
      b.mistake("data", source.name + ".generated.model: " + wrong);
  }
}

}  // namespace

void bind(Binder& b, Recipe& recipe) {
  b.count("version", recipe.version,
          {.doc = "of the recipe format: 1", .required = true, .at_least = 1, .at_most = 1});
  b.one_of(
      "device", recipe.device, {"cpu", "cuda", "privateuseone"},
      {.doc = "where models run; privateuseone: on the device that a preloaded library brings to libtorch"});
  b.one_of("dtype", recipe.dtype, {"auto", "fp32", "bf16"},
           {.doc = "of computing; auto: bf16 where a product of the model's shape is faster in it, else "
                   "fp32; weights and moments "
                   "stay fp32"});
  b.seed("seed", recipe.seed, {.doc = "of every stage that names none"});
  b.count("memory_bytes", recipe.memory_bytes,
          {.doc = "that the run may use, for example 12G; 0: what the machine has", .at_least = 0});
  b.items("data",
          {.shape = Binder::Shape::map,
           .size = [&] { return recipe.data.size(); },
           .add = [&] { recipe.data.emplace_back(); },
           .name = [&](std::size_t i) -> std::string& { return recipe.data[i].name; },
           .body =
               [&](Binder& inner, std::size_t i) {
                 check_name(inner, recipe.data[i].name);
                 if (inner.fills()) recipe.data[i].generated.seed = recipe.seed;
                 bind_source(inner, recipe.data[i]);
               }},
          {.doc = "sources of text by name", .may_be_empty = true});
  b.items("stages",
          {.shape = Binder::Shape::named_list,
           .size = [&] { return recipe.stages.size(); },
           .add = [&] { recipe.stages.emplace_back(); },
           .name = [&](std::size_t i) -> std::string& { return recipe.stages[i].name; },
           .body = [&](Binder& inner, std::size_t i) { bind_stage(inner, recipe, i); }},
          {.doc = "what is done, in this order", .required = true});
  check_writers(b, recipe);
  const auto reads_text = [](const Stage& stage) { return traits_of(stage.kind).reads_text; };
  if (recipe.data.empty() && std::ranges::any_of(recipe.stages, reads_text))
    b.mistake("data", "expected a source of text, which a stage reads, found none");
}

}  // namespace retort::recipe
