// Stages train, finetune and distill: the same loop with other losses, and a teacher or none.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/comm/requests.h"
#include "retort/data/countable_text.h"
#include "retort/data/windows.h"
#include "retort/eval/generation_config.h"
#include "retort/io/model_directory.h"
#include "retort/loss/losses.h"
#include "retort/model/common_blocks.h"
#include "retort/model/dtype.h"
#include "retort/model/saved_units.h"
#include "retort/model/sparsity.h"
#include "retort/model/weights.h"
#include "retort/optim/learning_rate.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/exchanged.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/known_models.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/text_checks.h"
#include "retort/pipeline/vocabulary.h"
#include "retort/record/keys.h"
#include "retort/record/stopped.h"
#include "retort/train/batches.h"
#include "retort/train/memory_shape.h"
#include "retort/train/trainer.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

// What the options mean for the stage's models.
struct Training {
  const Stage& stage;
  train::TrainOptions options = {};  ///< with the learning rate that they leave open
  std::vector<loss::LossOptions> losses = {};
  loss::Blocks blocks = {};  ///< but for the number of tokens
  train::StepPlan plan = {};
  StageWork work = {};
  base::Path from = {}, teacher = {};  ///< directories; empty: random weights, and none
  base::Path tokenizer = {};           ///< directory that its files come from
};

const train::TrainOptions& options_of(const Stage& stage) {
  return std::get<train::TrainOptions>(stage.options);
}

std::vector<loss::LossOptions> losses_of(const Stage& stage) {
  const auto& options = options_of(stage);
  if (!options.losses.empty()) return options.losses;
  return !stage.teacher.empty() ? loss::default_distillation_losses() : std::vector<loss::LossOptions>(1);
}

model::UnitSource starting_point(const Training& training) {
  if (!training.from.empty()) return model::open_weights(training.from);
  auto source = model::random_source(starting_config(training.stage), training.options.seed);
  source.file_dtype = io::Dtype::f32;
  return source;
}

std::vector<data::Sequence> held_out_windows(const data::SourceOptions& source,
                                             const train::TrainOptions& options, const ModelText& text) {
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
  if (!data::has_target(windows)) throw base::DataError(data::nothing_to_predict(source, options.packing));
  return windows;
}

// Collective.
std::vector<train::HeldOutSet> held_out_sets(const Context& context, const Training& training,
                                             const ModelText& text) {
  const auto& options = training.options;
  std::vector<train::HeldOutSet> sets;
  if (options.evaluate_every_steps <= 0) return sets;
  for (const auto& source : context.recipe.sources(training.stage)) {
    const auto windows = context.read_once([&] { return held_out_windows(source, options, text); });
    context.group.agree([&] {
      sets.push_back(
          {source.name, train::make_micro_batches(windows, options.batch.sequences, context.place.device)});
    });
  }
  return sets;
}

// Training below float32 keeps a float32 master; float64 is for tests of the library only.
struct Models {
  shard::Groups student_groups, teacher_groups;
  std::unique_ptr<shard::Parameters> student, teacher_weights;
  std::unique_ptr<shard::Teacher> teacher;
  std::unique_ptr<optim::WeightRule> rule;  // that the student keeps to
  model::Lineage lineage;                   // of the student
  io::Dtype file_dtype = io::Dtype::bf16;
  base::Json inputs = base::Json::array();
  std::int64_t num_tokens = 0;  // of both vocabularies, where there is a teacher
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

std::unique_ptr<shard::Parameters> placed(const Context& context, const model::UnitSource& source,
                                          shard::Use use, std::int64_t ranks_per_shard,
                                          shard::Groups& groups) {
  if (context.group.size() == 1) {
    const auto dtype = use == shard::Use::frozen ? context.dtype : at::kFloat;
    return shard::resident_parameters(model::collected(source, dtype, context.place.device), use,
                                      context.dtype);
  }
  groups = shard::make_groups(context.group, ranks_per_shard);
  return shard::sharded_parameters(source, use, context.dtype, context.place.device, groups);
}

// What keeps a sparse model sparse; null for others.
std::unique_ptr<optim::WeightRule> rule_of(shard::Parameters& student, const model::Lineage& lineage) {
  if (lineage.sparse_layers.empty()) return {};
  std::vector<at::Tensor> masks;
  for (std::int64_t unit = 0; unit < student.layout().num_units(); ++unit)
    masks.push_back(model::mask_of_part(student.layout(), lineage, static_cast<std::size_t>(unit),
                                        student.range(unit).begin, student.master(unit)));
  return std::make_unique<optim::KeepZeros>(std::move(masks));
}

// Rank 0 says what a run was made of; hashing is reading all of it.
void describe(const Context& context, const std::string& name, const base::Path& path, Models& models) {
  if (context.leads()) models.inputs.push_back(describe_input(name, path));
}

void load_student(const Context& context, const Training& training, Models& models) {
  const auto& options = training.options;
  model::UnitSource source;
  context.group.agree([&] {
    source = starting_point(training);
    if (!training.from.empty()) describe(context, training.stage.from, training.from, models);
  });
  models.lineage = source.lineage;
  models.file_dtype = source.file_dtype;
  models.student =
      placed(context, source, shard::Use::trained, options.shard.student_ranks, models.student_groups);
  models.rule = rule_of(*models.student, models.lineage);
}

void load_teacher(const Context& context, const Training& training, Models& models) {
  const auto& stage = training.stage;
  model::UnitSource source;
  context.group.agree([&] {
    models.num_tokens = require_same_tokens(base::join("stage '", stage.name, "'"),
                                            {stage.from, training.from}, {stage.teacher, training.teacher});
    source = model::open_weights(training.teacher);
    models.num_tokens = std::min(models.num_tokens, source.config.vocab_size);  // special tokens lack rows
    (void)read_model_text(training.teacher, source.config);
    describe(context, stage.teacher, training.teacher, models);
  });
  if (any_loss(training.losses, &loss::LossTraits::on_hidden_states))
    warn_of_pooling(context, stage, models.lineage, source.config);
  models.teacher_weights = placed(context, source, shard::Use::frozen, training.options.shard.teacher_ranks,
                                  models.teacher_groups);
  models.teacher = std::make_unique<shard::ModelTeacher>(*models.teacher_weights);
}

Models load_models(const Context& context, const Training& training) {
  Models models;
  load_student(context, training, models);
  if (any_loss(training.losses, &loss::LossTraits::needs_teacher)) load_teacher(context, training, models);
  return models;
}

// Named as people read of them.
std::vector<NamedGroup> groups_of(const Context& context, const Models& models) {
  std::vector<NamedGroup> groups{{"all ranks", &context.group}};
  const auto add = [&](const std::string& model, const shard::Groups& of_model) {
    if (!of_model.shard) return;
    groups.push_back({model + " shard", of_model.shard.get()});
    groups.push_back({model + " replicas", of_model.replica.get()});
  };
  add("student", models.student_groups);
  add("teacher", models.teacher_groups);
  return groups;
}

// Rank 0 writes the model and asks for one unit after the other, which all put together.
void save_trained(const Context& context, const Training& training, const Models& models,
                  const base::Json& begin_of_text) {
  std::size_t held = std::numeric_limits<std::size_t>::max();
  at::Tensor values;  // of that unit; where the ranks have memory in common nothing is copied
  comm::Requests requests(context.group, [&](const std::string& unit) {
    auto whole = models.student->whole_master(std::stoll(unit));
    if (context.leads()) values = std::move(whole);
    return std::string();
  });
  if (!context.leads()) return requests.serve();
  const model::SavedUnits units{models.student->config(), models.student->layout(), models.lineage,
                                models.file_dtype, [&](std::size_t unit) {
                                  if (std::exchange(held, unit) != unit) {
                                    values = at::Tensor();
                                    requests.ask(std::to_string(unit));
                                    model::check_pattern(models.student->layout(), models.lineage, unit,
                                                         values);
                                  }
                                  return values;
                                }};
  auto provenance = provenance_of(training.stage, context.dtype, models.inputs);
  provenance[record::keys::kBeginOfText] = begin_of_text;
  model::save_model(units, context.directory.model_directory(training.stage.name), training.tokenizer,
                    provenance);
}

// What makes a checkpoint this stage's: the shape that its ranges lie in, and where it started.
base::Json identity_of(const Stage& stage, const Models& models) {
  base::Json units = base::Json::array();
  for (const auto& unit : models.student->layout().units) units.push_back(unit.size);
  base::Json started_from = base::Json::array();
  for (const auto& input : models.inputs) started_from.push_back(input.at("xxh128"));
  return {{"stage", stage.name}, {"units", units}, {"started_from", started_from}};
}

loss::Blocks blocks_of(const PlanContext& context, const Stage& stage,
                       const std::vector<loss::LossOptions>& losses, const architecture::Config& student,
                       const architecture::Config& teacher) {
  const auto of_student =
      stage.origins().empty() ? model::whole_lineage(student) : context.models.lineage(stage.from);
  return {.student = std::ssize(student.blocks),
          .teacher = std::ssize(teacher.blocks),
          .survivors = survivors_of(stage, losses, of_student, context.models.lineage(stage.teacher)),
          .features = features_of(of_student, teacher)};
}

// Nothing while a model is still to be made.
std::optional<Training> planned(const PlanContext& context, const Stage& stage) {
  const bool begins = stage.origins().empty();
  const auto student = begins ? starting_config(stage) : context.models.config(stage.from);
  std::optional<architecture::Config> teacher;
  if (!stage.teacher.empty()) teacher = context.models.config(stage.teacher);
  if (!student || (!stage.teacher.empty() && !teacher)) return {};
  Training training{.stage = stage,
                    .options = options_of(stage),
                    .losses = losses_of(stage),
                    .blocks = {.student = std::ssize(student->blocks)}};
  base::require<base::UsageError>(teacher || !any_loss(training.losses, &loss::LossTraits::needs_teacher),
                                  "stage '", stage.name,
                                  "': its losses compare with a teacher; use kind: distill and name one.");
  training.options.optim = optim::with_learning_rate(
      training.options.optim, student->hidden_size,
      begins ? optim::StartedFrom::random_weights : optim::StartedFrom::trained_weights);
  train::check_on_policy(stage.name, training.options, training.losses);
  if (teacher) training.blocks = blocks_of(context, stage, training.losses, *student, *teacher);
  const auto losses = loss::make_losses(training.losses, training.blocks);
  const bool is_sparse = !begins && context.models.is_sparse(stage.from);
  training.plan = train::plan_steps(training.options, *student, teacher ? &*teacher : nullptr, losses,
                                    is_sparse ? optim::KeepZeros::kNeeds : optim::RuleNeeds(), context.dtype,
                                    context.place.device, context.place.bytes_of_rank(), context.place.ranks);
  training.work = training_work(training.options, *student, teacher ? &*teacher : nullptr,
                                std::ssize(stage.data), context.dtype);
  if (!begins) training.from = context.models.path(stage.from).value_or(base::Path());
  if (teacher) training.teacher = context.models.path(stage.teacher).value_or(base::Path());
  training.tokenizer = begins ? base::Path(stage.tokenizer) : training.from;
  return training;
}

// What is asked of random weights alone.
void check_beginning(const PlanContext& context, const Stage& stage) {
  std::error_code ignored;
  base::require<base::ModelError>(std::filesystem::exists(stage.tokenizer, ignored), "stage '", stage.name,
                                  "': tokenizer: there is no file or directory '", stage.tokenizer,
                                  "'; give a model directory or a tokenizer.json.");
  const auto config = starting_config(stage);
  require_context(stage.name, "packing.sequence_length", options_of(stage).packing.sequence_length, config);
  (void)io::accompanying_files(stage.tokenizer);
  inspect_config(stage, context.observer);
}

void check(const PlanContext& context, const Stage& stage) {
  const bool begins = stage.origins().empty();
  if (begins) check_beginning(context, stage);
  const auto text = begins ? read_model_text(stage.tokenizer, starting_config(stage))
                           : read_model_text(context.models.tokenizer_of_line(stage.from),
                                             context.models.config_of_line(stage.from));
  context.observer.message(
      record::Level::info,
      base::join("stage '", stage.name, "': ", describe_begin_of_text(options_of(stage).packing.bos, text)));
  require_text_to_train(context, stage, text);
}

// A stage that reads its text many times learns less from a token than one that reads more text.
void say_of_text(const Context& context, const Stage& stage, const data::SequenceStream& stream) {
  for (const auto& source : stream.statistics()) {
    say_skipped(stage.name, source.name, source.skipped_lines, context.observer);
    if (source.epoch > 0)
      context.observer.message(record::Level::info, base::join(stage.name, ": the text of data.", source.name,
                                                               " is in its pass ", source.epoch + 1));
    say_passed_over(stage.name, source, options_of(stage).packing, context.observer);
  }
  if (const double share = stream.padding_share(); share > 0)
    context.observer.message(record::Level::info,
                             base::join(stage.name, ": ", std::round(share * 1000) / 10,
                                        " % of the sequences are padding, since documents are kept whole"));
}

// What a stage has read: of every source, all passes together.
base::Json text_json(const data::SequenceStream& stream) {
  auto sources = base::Json::object();
  for (const auto& source : stream.statistics())
    sources[source.name] = {{"documents", source.documents}, {"bytes", source.bytes},
                            {"tokens", source.tokens},       {"targets", source.targets},
                            {"passes", source.epoch},        {"skipped_lines", source.skipped_lines},
                            {"too_long", source.too_long},   {"unanswered", source.unanswered},
                            {"refused", source.refused}};
  return {{"padding", stream.padding_share()}, {"sources", std::move(sources)}};
}

void say_learning_rate(const Context& context, const Training& training) {
  const double lr = training.options.optim.lr;
  if (lr != options_of(training.stage).optim.lr)
    context.observer.message(record::Level::info,
                             base::join(training.stage.name, ": learning rate ", lr,
                                        ", by the width of the model; optim.lr sets another"));
}

// What it takes to write texts; empty where the stage does not.
struct WritingParts {
  std::optional<loss::Losses> losses;
  std::optional<data::SequenceStream> prompts;  // on rank 0
  train::Writing writing = {};
};

// A student that ends its texts by another token than its teacher is never told to end them.
void warn_of_other_ends(const Context& context, const Training& training,
                        const std::vector<std::int32_t>& ends) {
  const auto of_teacher =
      eval::end_of_text_ids(training.teacher, architecture::read_config(training.teacher));
  const bool common = std::ranges::any_of(
      ends, [&](std::int32_t id) { return std::ranges::find(of_teacher, id) != of_teacher.end(); });
  if (common) return;
  const auto list = [](const std::vector<std::int32_t>& ids) {
    std::string text;
    for (const auto id : ids) text += base::join(text.empty() ? "" : ", ", id);
    return text.empty() ? std::string("none") : text;
  };
  context.observer.message(
      record::Level::warning,
      base::join("stage '", training.stage.name, "': texts of the student end with the token ", list(ends),
                 ", those of the teacher with ", list(of_teacher),
                 "; the student will hardly learn to end what it writes: give both models the same "
                 "eos_token_id in generation_config.json."));
}

// Collective.
void prepare_writing(const Context& context, const Training& training, const ModelText& text,
                     const Models& models, WritingParts& parts) {
  const auto& options = training.options;
  if (options.on_policy.share <= 0) return;
  auto blocks = training.blocks;
  blocks.num_tokens = models.num_tokens;
  parts.losses = loss::make_losses(loss::losses_on_written_text(training.losses), blocks);
  context.lead([&] {
    parts.prompts.emplace(context.recipe.sources(training.stage), train::packing_of_prompts(options),
                          train::beginnings(text.encode(), options.on_policy.prompt_tokens), text.special,
                          train::seed_of_prompts(options.seed), data::Split::training, 1);
  });
  const auto& student = models.student->config();
  auto& writing = parts.writing;
  context.group.agree([&] {
    writing.stop_ids = eval::end_of_text_ids(training.from, student);
    if (context.leads()) warn_of_other_ends(context, training, writing.stop_ids);
  });
  writing.ids_without_token = text.ids_without_token(student.vocab_size);
  // The teacher has no row for these.
  for (auto id = models.num_tokens; id > 0 && id < student.vocab_size; ++id)
    writing.ids_without_token.push_back(static_cast<std::int32_t>(id));
  writing.losses = &*parts.losses;
  writing.prompts = parts.prompts ? &*parts.prompts : nullptr;
}

// A student that has come to one of these learns nothing more from what it writes.
void say_of_writing(const Context& context, const Stage& stage, const train::WrittenCounts& written) {
  if (written.too_long_prompts > 0)
    context.observer.message(record::Level::info,
                             base::join(stage.name, ": ", written.too_long_prompts,
                                        " prompts were longer than on_policy.prompt_tokens and left out"));
  const auto warn = [&](std::int64_t count, const char* what) {
    if (2 * count <= written.texts) return;
    context.observer.message(
        record::Level::warning,
        base::join(stage.name, ": of ", written.texts, " texts that the student wrote, ", count, what));
  };
  warn(written.repeating,
       " say the same few tokens over and over; begin with a better student, lower on_policy.share or "
       "optim.lr.");
  warn(written.ended_at_once,
       " end at their first token; lower prompt_tokens, so that documents go on behind their beginnings.");
}

base::Json run(const Context& context, const Training& training) {
  const auto& stage = training.stage;
  const auto& options = training.options;
  auto models = load_models(context, training);
  say_learning_rate(context, training);
  auto blocks = training.blocks;
  blocks.num_tokens = models.num_tokens;
  const auto losses = loss::make_losses(training.losses, blocks);
  const auto text = read_model_text(training.tokenizer, models.student->config());
  std::optional<data::SequenceStream> stream;
  context.lead([&] {
    stream.emplace(context.recipe.sources(stage), options.packing, text.encode(), text.special, options.seed,
                   data::Split::training, train::prepared_sequences(options));
  });
  auto held_out = held_out_sets(context, training, text);
  WritingParts writing;
  prepare_writing(context, training, text, models, writing);

  train::TrainSetup setup{.stage = stage.name,
                          .options = options,
                          .plan = training.plan,
                          .student = *models.student,
                          .teacher = models.teacher.get(),
                          .losses = losses,
                          .rule = models.rule.get(),
                          .stream = stream ? &*stream : nullptr,
                          .writing = writing.writing,
                          .held_out = std::move(held_out),
                          .checkpoints = {context.directory.checkpoints(stage.name),
                                          identity_of(stage, models), options.keep_checkpoints},
                          .metrics = context.metrics,
                          .observer = context.observer,
                          .group = context.group,
                          .device = context.place.device,
                          .dtype = context.dtype};
  const Exchanged exchanged(groups_of(context, models));
  auto outcome = train::train(setup);
  const auto collectives = exchanged.json();
  base::require<record::StoppedError>(outcome.finished, stage.name, ": stopped on request after step ",
                                      outcome.progress.step, " of ", outcome.steps,
                                      "; a checkpoint is kept, the same command again goes on there.");
  if (stream) say_of_text(context, stage, *stream);
  if (outcome.result.written) say_of_writing(context, stage, *outcome.result.written);
  const auto begin_of_text = begin_of_text_json(options.packing.bos, text);
  context.group.agree([&] { save_trained(context, training, models, begin_of_text); });
  base::Json result = {{"kind", recipe::name(stage.kind)}};
  result.update(train::to_json(outcome.result));
  result[record::keys::kLr] = options.optim.lr;
  result[record::keys::kBeginOfText] = begin_of_text;
  if (stream) result[record::keys::kText] = text_json(*stream);
  if (!collectives.is_null()) {
    result[record::keys::kCollectives] = collectives;
    result[record::keys::kCollectivesSteps] = outcome.result.steps_of_start;
  }
  return result;
}

ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  ResolvedStage resolved{.lengths = {{"packing.sequence_length", options_of(stage).packing.sequence_length}},
                         .check = [&stage](const PlanContext& known) { check(known, stage); }};
  if (const auto training = planned(context, stage)) {
    resolved.memory = training->plan.memory;
    resolved.work = [work = training->work] { return work; };
    resolved.run = [training = *training](const Context& running) { return run(running, training); };
  }
  return resolved;
}

}  // namespace

const StageFunctions kTraining = {
    .text_use =
        [](const Stage& stage) {
          return TextUse{.learns = true, .reads_held_out = options_of(stage).evaluate_every_steps > 0};
        },
    .resolve = resolve};

}  // namespace retort::pipeline
