#include "retort/recipe/binding.h"

#include <algorithm>

#include "retort/base/units.h"
#include "retort/calibrate/options.h"
#include "retort/prune/options.h"
#include "retort/recipe/bind_options.h"
#include "retort/sparsify/options.h"

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

bool trains(StageKind kind) {
  return kind == StageKind::train || kind == StageKind::finetune || has_teacher(kind);
}

/// The stages that stage number `index` may name.
std::vector<std::string> names_before(const Recipe& recipe, std::size_t index) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < index; ++i) names.push_back(recipe.stages[i].name);
  return names;
}

/// A model is an earlier stage that makes one, or a directory, which has a slash in it.
void check_model(Binder& b, const char* key, const std::string& model, const Recipe& recipe,
                 std::size_t index) {
  if (model.empty() || model.find('/') != std::string::npos) return;
  for (std::size_t i = 0; i < recipe.stages.size(); ++i) {
    if (recipe.stages[i].name != model) continue;
    const auto made_by = recipe.stages[i].kind;
    if (i < index && (made_by == StageKind::evaluate || made_by == StageKind::profile))
      b.mistake(key,
                "stage '" + model + "' is of kind " + std::string(name(made_by)) + " and makes no model");
    if (i < index) return;
    return b.mistake(
        key, "stage '" + model + "' does not come before this one; stages run in the order of the file");
  }
  const std::string near = base::nearest(model, names_before(recipe, index));
  b.mistake(key, "'" + model + "' is no earlier stage and no directory (write ./" + model +
                     " for a directory)" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

/// Scores of one model say nothing about another.
void check_profile(Binder& b, const Stage& stage, const Recipe& recipe, std::size_t index) {
  if (stage.profile.empty()) return;
  for (std::size_t i = 0; i < index; ++i) {
    const Stage& profile = recipe.stages[i];
    if (profile.name != stage.profile || profile.kind != StageKind::profile) continue;
    if (profile.from != stage.from)
      b.mistake("profile",
                "stage '" + profile.name + "' profiles '" + profile.from + "', not '" + stage.from + "'");
    return;
  }
  std::vector<std::string> profiles;
  for (std::size_t i = 0; i < index; ++i)
    if (recipe.stages[i].kind == StageKind::profile) profiles.push_back(recipe.stages[i].name);
  const std::string near = base::nearest(stage.profile, profiles);
  b.mistake("profile", "'" + stage.profile + "' is no earlier stage of kind profile" +
                           (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

void check_data(Binder& b, const Stage& stage, const Recipe& recipe) {
  std::vector<std::string> known;
  for (const auto& source : recipe.data) known.push_back(source.name);
  for (const std::string& name : stage.data) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = base::nearest(name, known);
    b.mistake("data", "'" + name + "' is not among the sources under data" +
                          (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
}

void bind_model_keys(Binder& b, Stage& stage, StageKind kind, const Recipe& recipe, std::size_t index) {
  const auto model = [&](const char* key, std::string& value, const Field& field) {
    b.text(key, value, field);
    check_model(b, key, value, recipe, index);
  };
  if (kind == StageKind::train) {
    b.text("config", stage.config,
           {.doc = "config.json of the model that begins with random weights", .required = true});
    b.text("tokenizer", stage.tokenizer, {.doc = "directory with tokenizer files", .required = true});
  } else if (kind == StageKind::evaluate) {
    b.texts("models", stage.models,
            {.doc = "earlier stages or directories to be measured", .required = true});
    for (const std::string& name : stage.models) check_model(b, "models", name, recipe, index);
    if (b.fills() && stage.teacher.empty() && !stage.models.empty()) stage.teacher = stage.models.front();
    model("teacher", stage.teacher,
          {.doc = "model that the others are compared with",
           .may_be_empty = true,
           .unset = "the first of models"});
  } else if (kind == StageKind::select) {
    b.texts("models", stage.models,
            {.doc = "earlier stages or directories to choose from; of a prune stage with its finalists",
             .required = true});
    for (const std::string& name : stage.models) check_model(b, "models", name, recipe, index);
    model("teacher", stage.teacher, {.doc = "earlier stage or directory of the teacher", .required = true});
  } else {
    model("from", stage.from,
          {.doc = "earlier stage or directory of the model to start from", .required = true});
    if (kind == StageKind::distill)
      model("teacher", stage.teacher, {.doc = "earlier stage or directory of the teacher", .required = true});
    if (kind == StageKind::prune) {
      b.text("profile", stage.profile,
             {.doc = "earlier stage that profiled this model: its statistics rank the channels",
              .may_be_empty = true,
              .unset = "they are measured here"});
      check_profile(b, stage, recipe, index);
    }
  }
}

template <typename Options>
Options with_seed(std::uint64_t seed) {
  Options options;
  options.seed = seed;
  return options;
}

StageOptions default_options(StageKind kind, std::uint64_t seed) {
  if (trains(kind)) return with_seed<train::TrainOptions>(seed);
  if (kind == StageKind::prune) return with_seed<prune::PruneOptions>(seed);
  if (kind == StageKind::sparsify) return with_seed<sparsify::SparsifyOptions>(seed);
  if (kind == StageKind::profile) return with_seed<calibrate::ProfileOptions>(seed);
  return eval::EvaluateOptions{};
}

void bind_stage_kind(Binder& b, Recipe& recipe, std::size_t index, StageKind kind) {
  Stage& stage = recipe.stages[index];
  if (b.fills()) stage.options = default_options(kind, recipe.seed);
  bind_model_keys(b, stage, kind, recipe, index);
  b.texts("data", stage.data, {.doc = "names of sources", .required = true});
  check_data(b, stage, recipe);
  if (trains(kind))
    bind_train(b, std::get<train::TrainOptions>(stage.options), kind);
  else if (kind == StageKind::prune)
    bind_prune(b, std::get<prune::PruneOptions>(stage.options));
  else if (kind == StageKind::sparsify)
    bind_sparsify(b, std::get<sparsify::SparsifyOptions>(stage.options));
  else if (kind == StageKind::profile)
    bind_profile(b, std::get<calibrate::ProfileOptions>(stage.options));
  else
    bind_evaluate(b, std::get<eval::EvaluateOptions>(stage.options));
}

void bind_stage(Binder& b, Recipe& recipe, std::size_t index) {
  Stage& stage = recipe.stages[index];
  b.text("name", stage.name, {.doc = "of the stage and of the model that it makes", .required = true});
  if (!stage.name.empty()) check_name(b, stage.name);
  for (std::size_t i = 0; i < index; ++i)
    if (!stage.name.empty() && recipe.stages[i].name == stage.name)
      b.mistake("name", "'" + stage.name + "' names an earlier stage already");
  auto kind = static_cast<std::size_t>(stage.kind);
  b.kind("kind", kind, stage_kinds(), {.doc = "what the stage does", .required = true},
         [&](Binder& inner, std::size_t k) {
           recipe.stages[index].kind = static_cast<StageKind>(k);
           bind_stage_kind(inner, recipe, index, static_cast<StageKind>(k));
         });
}

}  // namespace

const Words& stage_kinds() {
  static const Words words = {"train",    "finetune", "profile", "prune",
                              "sparsify", "distill",  "select",  "evaluate"};
  return words;
}

void bind(Binder& b, Recipe& recipe) {
  b.count("version", recipe.version,
          {.doc = "of the recipe format: 1", .required = true, .at_least = 1, .at_most = 1});
  b.one_of("device", recipe.device, {"cpu", "cuda"}, {.doc = "where models run"});
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
                 bind_source(inner, recipe.data[i]);
               }},
          {.doc = "sources of text by name", .required = true});
  b.items("stages",
          {.shape = Binder::Shape::named_list,
           .size = [&] { return recipe.stages.size(); },
           .add = [&] { recipe.stages.emplace_back(); },
           .name = [&](std::size_t i) -> std::string& { return recipe.stages[i].name; },
           .body = [&](Binder& inner, std::size_t i) { bind_stage(inner, recipe, i); }},
          {.doc = "what is done, in this order", .required = true});
}

}  // namespace retort::recipe
