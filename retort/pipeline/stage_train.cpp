// Stages train, finetune and distill: the same loop with other losses, and a teacher or none.
#include <ATen/ATen.h>

#include <algorithm>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/calibrate/options.h"
#include "retort/calibrate/profile.h"
#include "retort/data/windows.h"
#include "retort/loss/losses.h"
#include "retort/model/common_blocks.h"
#include "retort/model/dtype.h"
#include "retort/model/sparsity.h"
#include "retort/model/weights.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/vocabulary.h"
#include "retort/prune/options.h"
#include "retort/prune/plan.h"
#include "retort/sparsify/options.h"
#include "retort/sparsify/plan.h"
#include "retort/train/batches.h"
#include "retort/train/trainer.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;
using recipe::StageKind;

std::vector<loss::LossOptions> losses_of(const Stage& stage, const train::TrainOptions& options) {
  if (!options.losses.empty()) return options.losses;
  return stage.kind == StageKind::distill ? loss::default_distillation_losses()
                                          : std::vector<loss::LossOptions>(1);
}

// The directory that tokenizer files come from.
base::Path tokenizer_path(const Context& context, const Stage& stage) {
  return stage.kind == StageKind::train ? base::Path(stage.tokenizer) : context.model_path(stage.from);
}

model::Weights starting_weights(const Context& context, const Stage& stage,
                                const train::TrainOptions& options) {
  if (stage.kind != StageKind::train)
    return model::load_weights(context.model_path(stage.from), at::kFloat, context.device);
  auto weights = model::random_weights(starting_config(stage), options.seed, at::kFloat, context.device);
  weights.file_dtype = io::Dtype::f32;
  return weights;
}

std::vector<train::HeldOutSet> held_out_sets(const Context& context, const Stage& stage,
                                             const train::TrainOptions& options, const ModelText& text) {
  std::vector<train::HeldOutSet> sets;
  if (options.evaluate_every_steps <= 0) return sets;
  for (const auto& source : context.sources(stage)) {
    data::WindowReader reader(source, data::Split::held_out,
                              {.context = options.packing.sequence_length,
                               .tokens = options.evaluate_tokens,
                               .bos = options.packing.bos,
                               .eos = options.packing.eos,
                               .attend_across_documents = options.packing.attend_across_documents},
                              text.encode(), text.special);
    std::vector<data::Sequence> windows;
    std::int64_t tokens = 0;
    for (data::Sequence window; tokens < options.evaluate_tokens && reader.next(window);) {
      tokens += static_cast<std::int64_t>(window.ids.size());
      windows.push_back(std::move(window));
    }
    sets.push_back(
        {source.name, train::make_micro_batches(windows, options.batch.sequences, context.device)});
  }
  return sets;
}

// Training below float32 keeps a float32 master; float64 is for tests of the library only.
struct Models {
  std::unique_ptr<shard::Parameters> student, teacher;
  std::vector<at::Tensor> masks;
  base::Json inputs = base::Json::array();
  loss::Blocks blocks;
};

// How the student's hidden features correspond to the teacher's, where both are known.
std::vector<std::int64_t> features_of(const model::Lineage& student, const architecture::Config& teacher) {
  const bool sliced = std::ssize(student.kept.hidden) < student.teacher_hidden;
  return sliced && teacher.hidden_size == student.teacher_hidden ? student.kept.hidden
                                                                 : std::vector<std::int64_t>();
}

// Neighbours in the teacher have nothing in common with features that were chosen out of another model.
void warn_of_pooling(const Context& context, const Stage& stage, const model::Lineage& student,
                     const architecture::Config& teacher) {
  const auto kept = std::ssize(student.kept.hidden);
  if (kept == student.teacher_hidden || teacher.hidden_size == kept ||
      teacher.hidden_size == student.teacher_hidden)
    return;
  context.observer.message(
      record::Level::warning,
      base::join(
          "stage '", stage.name, "': the student's ", kept, " hidden features were kept of ",
          student.teacher_hidden, ", the teacher has ", teacher.hidden_size,
          ": losses on hidden states compare with averages of neighbours only; distil from the model with ",
          student.teacher_hidden, ", or leave squarehead out of loss."));
}

// The teacher's block that each of the student's was; empty where no layer map asks.
std::vector<std::int64_t> survivors_of(const Stage& stage, const std::vector<loss::LossOptions>& losses,
                                       const model::Lineage& student, const model::Lineage& teacher) {
  const bool asked = std::ranges::any_of(losses, [](const auto& loss) {
    return loss::traits_of(loss.kind).on_hidden_states && loss.layer_map != loss::LayerMap::relative_depth;
  });
  if (!asked) return {};
  auto survivors = model::blocks_within(student, teacher);
  base::require<base::UsageError>(survivors.has_value(), "stage '", stage.name,
                                  "': its layer_map needs a teacher that the student was cut from: '",
                                  stage.from, "' has blocks of a model with ", student.teacher_blocks,
                                  " blocks and ", student.teacher_hidden, " hidden features, '",
                                  stage.teacher, "' has ", teacher.kept.blocks.size(), " of one with ",
                                  teacher.teacher_blocks, " and ", teacher.teacher_hidden,
                                  "; use layer_map: relative_depth, or that teacher.");
  return *survivors;
}

bool any_loss(const std::vector<loss::LossOptions>& losses, bool loss::LossTraits::*trait) {
  return std::ranges::any_of(losses, [&](const auto& loss) { return loss::traits_of(loss.kind).*trait; });
}

Models load_models(const Context& context, const Stage& stage, const train::TrainOptions& options,
                   const std::vector<loss::LossOptions>& losses) {
  Models models;
  auto weights = starting_weights(context, stage, options);
  require_context(stage.name, "packing.sequence_length", options.packing.sequence_length, weights.config);
  models.masks = model::masks_of(weights);
  const auto lineage = weights.lineage;
  models.blocks.student = std::ssize(weights.config.blocks);
  if (!stage.from.empty())
    models.inputs.push_back(describe_input(stage.from, context.model_path(stage.from)));
  models.student = shard::resident_parameters(std::move(weights), shard::Use::trained, context.dtype);
  if (any_loss(losses, &loss::LossTraits::needs_teacher)) {
    base::require<base::UsageError>(!stage.teacher.empty(), "stage '", stage.name,
                                    "': its losses compare with a teacher; use kind: distill and name one.");
    const auto path = context.model_path(stage.teacher);
    models.blocks.num_tokens =
        require_same_tokens(base::join("stage '", stage.name, "'"),
                            {stage.from, context.model_path(stage.from)}, {stage.teacher, path});
    auto teacher = model::load_weights(path, context.dtype, context.device);
    (void)read_model_text(path, teacher.config);
    models.blocks.teacher = std::ssize(teacher.config.blocks);
    models.blocks.survivors = survivors_of(stage, losses, lineage, teacher.lineage);
    models.blocks.features = features_of(lineage, teacher.config);
    if (any_loss(losses, &loss::LossTraits::on_hidden_states))
      warn_of_pooling(context, stage, lineage, teacher.config);
    models.inputs.push_back(describe_input(stage.teacher, path));
    models.teacher = shard::resident_parameters(std::move(teacher), shard::Use::frozen, context.dtype);
  }
  return models;
}

// Of the models that a select stage distils one after the other.
std::optional<shard::MemoryPlan> largest_known_memory(const recipe::Recipe& recipe, const Stage& stage,
                                                      at::ScalarType dtype, std::int64_t available_bytes) {
  std::optional<shard::MemoryPlan> largest;
  for (const auto& model : stage.models)
    if (auto plan = known_memory(recipe, distillation_of(stage, stage.name, model), dtype, available_bytes);
        plan && (!largest || plan->total_bytes() > largest->total_bytes()))
      largest = std::move(plan);
  return largest;
}

// What makes a checkpoint this stage's: the shape that its ranges lie in, and where it started.
base::Json identity_of(const Stage& stage, const Models& models) {
  base::Json units = base::Json::array();
  for (const auto& unit : models.student->layout().units) units.push_back(unit.size);
  base::Json started_from = base::Json::array();
  for (const auto& input : models.inputs) started_from.push_back(input.at("xxh128"));
  return {{"stage", stage.name}, {"units", units}, {"started_from", started_from}};
}

}  // namespace

std::optional<base::Json> run_train_stage(const Context& context, const Stage& stage) {
  const auto& options = std::get<train::TrainOptions>(stage.options);
  const auto loss_options = losses_of(stage, options);
  auto models = load_models(context, stage, options, loss_options);
  const auto losses = loss::make_losses(loss_options, models.blocks);
  const auto text = read_model_text(tokenizer_path(context, stage), models.student->config());
  data::SequenceStream stream(context.sources(stage), options.packing, text.encode(), text.special,
                              options.seed, data::Split::training, train::prepared_sequences(options));

  train::TrainSetup setup{.stage = stage.name,
                          .options = options,
                          .student = *models.student,
                          .teacher = models.teacher.get(),
                          .losses = losses,
                          .masks = models.masks,
                          .stream = stream,
                          .held_out = held_out_sets(context, stage, options, text),
                          .checkpoints = {context.directory.checkpoints(stage.name),
                                          identity_of(stage, models), options.keep_checkpoints},
                          .metrics = context.metrics,
                          .observer = context.observer,
                          .group = context.group,
                          .device = context.device,
                          .dtype = context.dtype,
                          .available_bytes = context.available_bytes};
  auto outcome = train::train(setup);
  if (!outcome.finished) return std::nullopt;
  const auto trained = models.student->gathered();
  model::check_pattern(trained);
  model::save_model(trained, context.directory.model_directory(stage.name), tokenizer_path(context, stage),
                    provenance_of(stage, context.dtype, models.inputs));
  base::Json result = {{"kind", recipe::name(stage.kind)}};
  result.update(outcome.report);
  return result;
}

architecture::Config starting_config(const Stage& stage) {
  std::error_code ignored;
  base::require<base::ModelError>(std::filesystem::is_regular_file(stage.config, ignored), "stage '",
                                  stage.name, "': config: there is no file '", stage.config,
                                  "'; give the path of a config.json.");
  return architecture::parse_hf_config(base::read_file(stage.config, std::size_t{1} << 20), stage.config);
}

Stage distillation_of(const Stage& select, const std::string& name, const std::string& from) {
  Stage stage = select;
  stage.kind = StageKind::distill;
  stage.name = name;
  stage.from = from;
  stage.models.clear();
  return stage;
}

std::optional<shard::MemoryPlan> known_memory(const recipe::Recipe& recipe, const Stage& stage,
                                              at::ScalarType dtype, std::int64_t available_bytes) {
  const auto made_here = [&](const std::string& name) { return recipe.find_stage(name) != nullptr; };
  if (const auto* profile = std::get_if<calibrate::ProfileOptions>(&stage.options);
      profile && !made_here(stage.from))
    return calibrate::plan_profile(
        architecture::read_config(stage.from), sizeof(float),
        calibration_tokens(stage, profile->calibration_tokens, profile->sequence_length),
        std::max(calibrate::kPanelTokens, profile->sequence_length));
  if (const auto* pruning = std::get_if<prune::PruneOptions>(&stage.options);
      pruning && !made_here(stage.from))
    return prune::plan_prune_within(
               available_bytes, /*may_use_disk=*/true, architecture::read_config(stage.from), sizeof(float),
               calibration_tokens(stage, pruning->calibration_tokens, pruning->sequence_length),
               std::max(calibrate::kCalibrationBatchTokens, pruning->sequence_length), *pruning)
        .memory;
  if (const auto* sparsify = std::get_if<sparsify::SparsifyOptions>(&stage.options);
      sparsify && !made_here(stage.from))
    return sparsify::plan_sparsify(
        architecture::read_config(stage.from), sizeof(float),
        sparsify::most_tokens(
            *sparsify, calibration_tokens(stage, sparsify->calibration_tokens, sparsify->sequence_length)),
        *sparsify, /*on_disk=*/true);
  const auto* options = std::get_if<train::TrainOptions>(&stage.options);
  if (stage.kind == StageKind::select) return largest_known_memory(recipe, stage, dtype, available_bytes);
  if (stage.kind == StageKind::evaluate)
    return plan_evaluation(stage, model::parse_device(recipe.device), [&](const std::string& name) {
      return made_here(name) ? std::nullopt : std::optional(architecture::read_config(name));
    });
  if (!options || made_here(stage.from) || made_here(stage.teacher)) return {};
  const auto student =
      stage.kind == StageKind::train ? starting_config(stage) : architecture::read_config(stage.from);
  std::optional<architecture::Config> teacher;
  if (stage.kind == StageKind::distill) teacher = architecture::read_config(stage.teacher);
  const auto lineage = stage.kind == StageKind::train ? model::whole_lineage(student)
                                                      : model::read_lineage(stage.from, student);
  loss::Blocks blocks{.student = std::ssize(student.blocks)};
  const auto loss_options = losses_of(stage, *options);
  if (teacher) {
    blocks.teacher = std::ssize(teacher->blocks);
    blocks.survivors =
        survivors_of(stage, loss_options, lineage, model::read_lineage(stage.teacher, *teacher));
  }
  const auto losses = loss::make_losses(loss_options, blocks);
  const auto shape = train::memory_shape(*options, student, teacher ? &*teacher : nullptr, losses,
                                         !lineage.sparse_layers.empty(), dtype,
                                         model::parse_device(recipe.device), available_bytes);
  return shard::plan_memory(shape);
}

}  // namespace retort::pipeline
