#include "retort/recipe/stage_kinds.h"

#include <algorithm>
#include <vector>

#include "retort/base/error.h"
#include "retort/recipe/bind_options.h"
#include "retort/recipe/suggestion.h"

namespace retort::recipe {
namespace {

template <typename Options>
StageOptions defaults_of(std::uint64_t seed) {
  Options options;
  if constexpr (requires { options.seed; }) options.seed = seed;
  return options;
}

template <typename Options, void (*bind)(Binder&, Options&)>
void bind_as(Binder& b, StageOptions& options) {
  bind(b, std::get<Options>(options));
}

template <bool with_teacher>
void bind_training(Binder& b, StageOptions& options) {
  bind_train(b, std::get<train::TrainOptions>(options), with_teacher);
}

void bind_beginning(StageKeys& keys) {
  Stage& stage = keys.stage();
  keys.binder().text(
      "config", stage.config,
      {.doc = "config.json or GGUF file of the model that begins with random weights", .required = true});
  keys.binder().text("tokenizer", stage.tokenizer,
                     {.doc = "directory with tokenizer files", .required = true});
}

void bind_from(StageKeys& keys) {
  keys.from();
}

void bind_pruned(StageKeys& keys) {
  keys.from();
  keys.profile();
}

void bind_from_and_teacher(StageKeys& keys) {
  keys.from();
  keys.teacher();
}

void bind_choice(StageKeys& keys) {
  keys.models("earlier stages or directories to choose from; of a prune stage with its finalists");
  keys.teacher();
  bind_target_of_select(keys.binder(), keys.stage().target);
}

void bind_comparison(StageKeys& keys) {
  keys.models("earlier stages or directories to be measured");
  keys.as();
  Stage& stage = keys.stage();
  if (keys.binder().fills() && stage.teacher.empty() && !stage.models.empty())
    stage.teacher = stage.models.front();
  keys.teacher({.doc = "model that the others are compared with",
                .may_be_empty = true,
                .unset = "the first of models"});
}

constexpr StageTraits kStageKinds[] = {
    {.kind = StageKind::train,
     .name = "train",
     .makes_model = true,
     .defaults = defaults_of<train::TrainOptions>,
     .bind_models = bind_beginning,
     .bind_options = bind_training<false>},
    {.kind = StageKind::finetune,
     .name = "finetune",
     .makes_model = true,
     .defaults = defaults_of<train::TrainOptions>,
     .bind_models = bind_from,
     .bind_options = bind_training<false>},
    {.kind = StageKind::profile,
     .name = "profile",
     .makes_files = true,
     .defaults = defaults_of<calibrate::ProfileOptions>,
     .bind_models = bind_from,
     .bind_options = bind_as<calibrate::ProfileOptions, bind_profile>},
    {.kind = StageKind::prune,
     .name = "prune",
     .makes_model = true,
     .makes_files = true,
     .decides_shape = true,
     .defaults = defaults_of<prune::PruneOptions>,
     .bind_models = bind_pruned,
     .bind_options = bind_as<prune::PruneOptions, bind_prune>},
    {.kind = StageKind::sparsify,
     .name = "sparsify",
     .makes_model = true,
     .makes_sparse = true,
     .defaults = defaults_of<sparsify::SparsifyOptions>,
     .bind_models = bind_from,
     .bind_options = bind_as<sparsify::SparsifyOptions, bind_sparsify>},
    {.kind = StageKind::distill,
     .name = "distill",
     .makes_model = true,
     .defaults = defaults_of<train::TrainOptions>,
     .bind_models = bind_from_and_teacher,
     .bind_options = bind_training<true>},
    {.kind = StageKind::select,
     .name = "select",
     .makes_model = true,
     .decides_shape = true,
     .defaults = defaults_of<train::TrainOptions>,
     .bind_models = bind_choice,
     .bind_options = bind_training<true>},
    {.kind = StageKind::evaluate,
     .name = "evaluate",
     .defaults = defaults_of<eval::EvaluateOptions>,
     .bind_models = bind_comparison,
     .bind_options = bind_as<eval::EvaluateOptions, bind_evaluate>},
    {.kind = StageKind::export_model,
     .name = "export",
     .reads_text = false,
     .makes_files = true,
     .defaults = defaults_of<publish::ExportOptions>,
     .bind_models = bind_from,
     .bind_options = bind_as<publish::ExportOptions, bind_export>},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kStageKinds); ++i)
    if (kStageKinds[i].kind != static_cast<StageKind>(i)) return false;
  return true;
}
static_assert(in_order(), "a StageKind is the index of its row");

}  // namespace

std::span<const StageTraits> stage_kinds() {
  return kStageKinds;
}

const StageTraits& traits_of(StageKind kind) {
  return kStageKinds[static_cast<std::size_t>(kind)];
}

void StageKeys::from() {
  binder_.text("from", stage().from,
               {.doc = "earlier stage or directory of the model to start from", .required = true});
  check_model("from", stage().from);
}

void StageKeys::teacher(const Field& field) {
  binder_.text("teacher", stage().teacher, field);
  check_model("teacher", stage().teacher);
}

void StageKeys::models(const char* doc) {
  binder_.texts("models", stage().models, {.doc = doc, .required = true});
  for (const std::string& name : stage().models) check_model("models", name);
}

void StageKeys::as() {
  auto& labels = stage().as;
  binder_.texts("as", labels,
                {.doc = "what tables and charts call the models, a name for each",
                 .unset = "the end of each path that tells them apart",
                 .written = !labels.empty()});
  if (labels.empty()) return;
  if (labels.size() != stage().models.size())
    binder_.mistake("as", base::join("expected a name for each of ", stage().models.size(), " models, found ",
                                     labels.size()));
  for (auto label = labels.begin(); label != labels.end(); ++label)
    if (std::find(labels.begin(), label, *label) != label)
      binder_.mistake("as", "'" + *label + "' is given twice");
}

void StageKeys::profile() {
  binder_.text("profile", stage().profile,
               {.doc = "earlier stage that profiled this model: its statistics rank the channels",
                .may_be_empty = true,
                .unset = "they are measured here"});
  if (!stage().profile.empty()) check_profile();
}

// A directory has a slash in it.
void StageKeys::check_model(const char* key, const std::string& model) {
  if (model.empty() || model.find('/') != std::string::npos) return;
  std::vector<std::string> before;
  for (std::size_t i = 0; i < recipe_.stages.size(); ++i) {
    const Stage& other = recipe_.stages[i];
    if (i < index_) before.push_back(other.name);
    if (other.name != model) continue;
    const auto& made_by = traits_of(other.kind);
    if (i >= index_)
      binder_.mistake(
          key, "stage '" + model + "' does not come before this one; stages run in the order of the file");
    else if (!made_by.makes_model)
      binder_.mistake(key, "stage '" + model + "' is of kind " + std::string(made_by.name) + " and makes " +
                               (made_by.makes_files ? "files and no model" : "no model"));
    return;
  }
  binder_.mistake(key, "'" + model + "' is no earlier stage and no directory (write ./" + model +
                           " for a directory)" + did_you_mean(model, before));
}

// Scores of one model say nothing about another.
void StageKeys::check_profile() {
  std::vector<std::string> profiles;
  for (std::size_t i = 0; i < index_; ++i) {
    const Stage& earlier = recipe_.stages[i];
    if (earlier.kind != StageKind::profile) continue;
    profiles.push_back(earlier.name);
    if (earlier.name != stage().profile) continue;
    if (earlier.from != stage().from)
      binder_.mistake("profile", "stage '" + earlier.name + "' profiles '" + earlier.from + "', not '" +
                                     stage().from + "'");
    return;
  }
  binder_.mistake("profile", "'" + stage().profile + "' is no earlier stage of kind profile" +
                                 did_you_mean(stage().profile, profiles));
}

}  // namespace retort::recipe
