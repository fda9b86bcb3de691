// Stage evaluate: every model of the stage over the held-out part of every source, beside the teacher.
#include <ATen/ATen.h>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/chat/answers.h"
#include "retort/chat/encode.h"
#include "retort/chat/template_files.h"
#include "retort/data/chat_encoder.h"
#include "retort/eval/change.h"
#include "retort/eval/evaluate.h"
#include "retort/eval/generate_texts.h"
#include "retort/eval/generation_config.h"
#include "retort/eval/memory_plan.h"
#include "retort/model/dtype.h"
#include "retort/ops/path.h"
#include "retort/ops/threads.h"
#include "retort/pipeline/scoring.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/tasks.h"
#include "retort/pipeline/text_checks.h"
#include "retort/pipeline/vocabulary.h"
#include "retort/recipe/stage_kinds.h"
#include "retort/record/keys.h"
#include "retort/report/report.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;
namespace keys = record::keys;

const eval::EvaluateOptions& options_of(const Stage& stage) {
  return std::get<eval::EvaluateOptions>(stage.options);
}

// The prompt and what the model made of it.  Special tokens of the prompt, such as those of a chat, decode to
// nothing: then only what is new is decoded, behind the prompt as it was given.
std::string shown(const ModelText& text, const std::string& prompt, const eval::Generation& generation) {
  auto all = text.tokenizer.decode(generation.ids);
  if (all.starts_with(prompt)) return all;
  const auto made = std::span(generation.ids).subspan(static_cast<std::size_t>(generation.prompt_tokens));
  return prompt + text.tokenizer.decode(made);
}

// A conversation as people read it: one question as it is, else who says what.
std::string shown(const base::Json& messages) {
  if (messages.size() == 1) return messages[0].at("content").get<std::string>();
  std::string all;
  for (const auto& message : messages)
    all += base::join(all.empty() ? "" : "\n", message.at("role").get<std::string>(), ": ",
                      message.at("content").get<std::string>());
  return all;
}

// What a model goes on from: prompts as they are, and chats as its chat template writes them.
struct Asked {
  ModelText text;
  std::vector<eval::Prompt> prompts = {};
  std::optional<std::int32_t> end_of_turn = {};
};

chat::ChatTemplate template_of(const base::Path& model) {
  return chat::choose_template(chat::find_templates(model), false);
}

chat::RenderOptions asking() {
  return {.add_generation_prompt = true, .now = data::day_of_templates()};
}

Asked asked_of(const base::Path& model, const architecture::Config& config,
               const eval::EvaluateOptions& options) {
  Asked asked{.text = read_model_text(model, config)};
  for (const auto& prompt : options.prompts)
    asked.prompts.push_back({.ids = asked.text.prompt_ids(prompt), .number = asked.prompts.size()});
  if (options.chats.empty()) return asked;
  const auto chosen = template_of(model);
  asked.end_of_turn = chat::end_of_turn(chosen, asked.text.tokenizer);
  for (const auto& messages : options.chats) {
    auto ids = chat::encode_conversation(chosen, asked.text.tokenizer,
                                         {.messages = messages, .tools = {}, .documents = {}}, asking())
                   .ids;
    asked.prompts.push_back({.ids = std::move(ids), .number = asked.prompts.size()});
  }
  return asked;
}

// `group`: ranks that make the same tokens together; null: this one makes them alone.
std::vector<eval::GeneratedText> generated(const LoadedModel& model, const eval::EvaluateOptions& options,
                                           comm::Group* group) {
  const auto num_prompts = options.prompts.size();
  std::vector<eval::GeneratedText> texts(num_prompts + options.chats.size());
  if (texts.empty()) return texts;
  auto& parameters = *model.weights.parameters;
  std::optional<Asked> asked;
  eval::TextsOptions how{.max_new_tokens = options.max_new_tokens};
  comm::agree(group, [&] {
    asked = asked_of(model.path, parameters.config(), options);
    how.stop_ids = eval::end_of_text_ids(model.path, parameters.config());
    how.ids_without_token = asked->text.ids_without_token(parameters.config().vocab_size);
  });
  const auto ends = [&](std::size_t which, std::int32_t id) {
    return which >= num_prompts && id == asked->end_of_turn;
  };
  const auto keep = [&](std::size_t which, const eval::Generation& made) {
    if (which < num_prompts) {
      const auto& prompt = options.prompts[which];
      texts[which] = {prompt, shown(asked->text, prompt, made), {}};
      return;
    }
    const auto& messages = options.chats[which - num_prompts];
    const auto answer = std::span(made.ids).subspan(static_cast<std::size_t>(made.prompt_tokens));
    texts[which] = {shown(messages), asked->text.tokenizer.decode(answer), messages};
  };
  eval::generate_texts(parameters, asked->prompts, how, {.ends = ends, .done = keep}, group);
  return texts;
}

// The model that the others are compared with, what it made of their text so far, and of their tasks.
struct Teacher {
  LoadedModel model;
  eval::TeacherStates states;
  AnsweredTasks tasks = {};
};

// Collective.
void stop_if_asked(const Context& context, const Stage& stage) {
  context.stop_if_asked(stage.name +
                        ": stopped on request; nothing is kept, the same command again measures all models.");
}

// `teacher`: its tasks, which are the model's too where no chat template writes them; null for itself.
// Collective.
AnsweredTasks answered(const Context& context, const Stage& stage, const LoadedModel& model,
                       const AnsweredTasks* teacher) {
  const auto& options = options_of(stage).tasks;
  if (options.files.empty()) return {};
  const auto& config = model.weights.parameters->config();
  const auto text = read_model_text(model.path, config);
  std::vector<tasks::PreparedTask> prepared;
  std::vector<TaskIds> ids;
  context.lead([&] {
    prepared = teacher && !options.chat ? teacher->tasks : prepare_tasks(options, model.path);
    ids = encode_tasks(prepared, model.path, text, config);
    say_what_was_cut(prepared, ids, config, context.observer);
  });
  const auto progress = [&](std::int64_t done, std::int64_t all) {
    stop_if_asked(context, stage);
    context.observer.progress(base::join(stage.name, ": answers of ", model.subject->name), done, all);
  };
  return answer_tasks(std::move(prepared), std::move(ids),
                      {.subject = *model.subject,
                       .directory = model.path,
                       .text = text,
                       .group = &context.group,
                       .threads = context.threads_of_machine()},
                      progress);
}

// A model on all text of a stage and on its tasks.
struct Scored {
  eval::ModelScores scores;
  base::Json tasks;  ///< null without tasks, and on other ranks than rank 0
};

// What the tasks came to, beside the teacher.
base::Json tasks_json(const Context& context, const AnsweredTasks& answered, const Teacher& teacher) {
  base::Json json;
  context.lead([&] {
    if (answered.tasks.empty()) return;
    json = answered.to_json();
    if (&answered != &teacher.tasks) json[keys::kComparisons] = compare_tasks(answered, teacher.tasks);
  });
  return json;
}

eval::ModelScores score_on_text(const Context& context, const Stage& stage, const LoadedModel& model,
                                Teacher& teacher) {
  const auto& options = options_of(stage);
  auto scores = held_out_scores(context, stage, options, model, &teacher.model, &teacher.states);
  if (!model.weights.parameters->resident()) {  // ranks gather it from each other
    scores.generations = generated(model, options, &context.group);
    return scores;
  }
  context.lead([&] {
    const ops::Threads threads(context.threads_of_machine());
    scores.generations = generated(model, options, nullptr);
  });
  return scores;
}

// Collective.
Scored score(const Context& context, const Stage& stage, const LoadedModel& model, Teacher& teacher) {
  Scored scored{score_on_text(context, stage, model, teacher), {}};
  if (&model == &teacher.model)
    scored.tasks = tasks_json(context, teacher.tasks, teacher);
  else
    scored.tasks = tasks_json(context, answered(context, stage, model, &teacher.tasks), teacher);
  return scored;
}

// The stage that made a model's layers sparse, where nothing after it changed their shape; null without one.
const Stage* sparsified_by(const recipe::Recipe& recipe, const std::string& model) {
  for (const auto* stage = recipe.find_stage(model); stage; stage = recipe.find_stage(stage->from)) {
    const auto& traits = recipe::traits_of(stage->kind);
    if (traits.makes_sparse) return stage;
    if (traits.decides_shape) return nullptr;
  }
  return nullptr;
}

// What sparsity did, and what is left of it after training: f of each model that was made sparse against the
// one before, where both are here.
base::Json sparsity_changes(const Context& context, const std::vector<eval::ModelScores>& scores) {
  auto changes = base::Json::array();
  for (const auto& after : scores) {
    const auto* stage = sparsified_by(context.recipe, after.name);
    if (!stage) continue;
    const auto& weights = std::get<sparsify::SparsifyOptions>(stage->options).objective;
    for (const auto& before : scores)
      if (before.name == stage->from)
        changes.push_back(eval::to_json(eval::change_of_f(before, after, weights.perplexity, weights.kl)));
  }
  return changes;
}

constexpr auto kKeptStates = "hidden states kept of the teacher";
constexpr std::int64_t kMostKeptBytes = std::int64_t{1} << 30;

// Those of all text on one rank, as far as there is room in `free_bytes`.
std::int64_t kept_bytes(const Stage& stage, const architecture::Config& teacher, std::int64_t item_bytes,
                        std::int64_t all_ranks, std::int64_t free_bytes) {
  const auto& options = options_of(stage);
  if (stage.models.size() < 2) return 0;
  const auto most = std::clamp<std::int64_t>(free_bytes / 2, 0, kMostKeptBytes);
  if (options.tokens == 0) return most;
  // A rank takes whole batches.
  const auto tokens =
      (options.tokens / all_ranks + eval::BatchSettings().tokens + options.context) * std::ssize(stage.data);
  return std::min(most, tokens * teacher.hidden_size * item_bytes);
}

// What texts take that go on from the prompts, beside the model's weights.
std::int64_t generation_bytes(const eval::EvaluateOptions& options, const architecture::Config& model,
                              const base::Path& tokenizer, std::int64_t item_bytes, const Place& place) {
  auto texts = options.prompts;
  if (!options.chats.empty()) {
    const auto chosen = template_of(tokenizer);
    for (const auto& messages : options.chats)
      texts.push_back(chosen.render({.messages = messages, .tools = {}, .documents = {}}, asking()).text);
  }
  if (texts.empty()) return 0;
  const auto longest = architecture::longest_context(model);
  std::vector<eval::Prompt> prompts;
  for (const auto& prompt : texts) {
    // A token has at least one byte of the prompt; a post-processor may add some.
    const auto tokens = std::min(longest, std::ssize(prompt) + 2);
    prompts.push_back({.ids = std::vector<std::int32_t>(static_cast<std::size_t>(tokens))});
  }
  const auto plan = eval::plan_texts(
      model, item_bytes, prompts, {.max_new_tokens = options.max_new_tokens}, ops::path_of(place.device),
      shard::read_only_layout(place.ranks).gathers ? eval::WeightsFrom::ranks : eval::WeightsFrom::memory);
  return plan.total_bytes() - plan.bytes_of(eval::kModelWeights);
}

// The largest among the models that are there.
std::optional<shard::MemoryPlan> largest_plan(const Stage& stage, const Place& place,
                                              const KnownModels& models) {
  const auto& options = options_of(stage);
  const auto item =
      static_cast<std::int64_t>(at::elementSize(model::parse_scoring_dtype("auto", place.device)));
  std::optional<shard::MemoryPlan> largest;
  const auto teacher = models.config(stage.teacher);
  for (const auto& name : stage.models) {
    const auto model = name == stage.teacher ? teacher : models.config(name);
    if (!model || !teacher) continue;
    auto plan = scoring_plan(*model, name == stage.teacher ? &*model : &*teacher, options.context,
                             place.device, place.ranks);
    // Scoring is over when texts are generated, so the larger of both counts.
    const auto scoring =
        plan.total_bytes() - plan.bytes_of(eval::kModelWeights) - plan.bytes_of(eval::kTeacherWeights);
    if (const auto more =
            generation_bytes(options, *model, models.tokenizer_of_line(name), item, place) - scoring;
        more > 0)
      plan.items.push_back({"generated texts, beyond scoring", more});
    if (!largest || plan.total_bytes() > largest->total_bytes()) largest = std::move(plan);
  }
  if (!largest) return {};
  const auto free = place.bytes_of_rank() - largest->total_bytes();
  if (const auto kept = kept_bytes(stage, *teacher, item, place.ranks.all, free))
    largest->items.push_back({kKeptStates, kept});
  return largest;
}

void check(const PlanContext& context, const Stage& stage) {
  require_text_to_measure(context, stage,
                          read_model_text(context.models.tokenizer_of_line(stage.teacher),
                                          context.models.config_of_line(stage.teacher)));
  for (const auto& name : stage.models)
    if (const auto& chats = options_of(stage).chats; !chats.empty()) {
      const auto chosen = template_of(context.models.tokenizer_of_line(name));
      for (const auto& messages : chats)
        (void)chosen.render({.messages = messages, .tools = {}, .documents = {}}, asking());
    }
  const auto& tasks = options_of(stage).tasks;
  if (!tasks.files.empty()) (void)prepare_tasks(tasks, context.models.tokenizer_of_line(stage.teacher));
}

// Collective.
Scored score_of(const Context& context, const Stage& stage, const std::string& name, Teacher& teacher) {
  if (name == stage.teacher) return score(context, stage, teacher.model, teacher);
  const auto model = load_for_scoring(context, name);
  context.group.agree([&] {
    (void)require_same_tokens(base::join("stage '", stage.name, "'"), {name, model.path},
                              {stage.teacher, teacher.model.path});
    eval::check_comparable(*model.subject, teacher.model.subject.get(), options_of(stage).context);
  });
  return score(context, stage, model, teacher);
}

base::Json run(const Context& context, const Stage& stage, const shard::MemoryPlan& plan) {
  const auto& options = options_of(stage);
  context.observer.message(record::Level::info,
                           base::join(stage.name, ": memory plan\n", shard::describe(plan)));
  Teacher teacher{load_for_scoring(context, stage.teacher), eval::TeacherStates(plan.bytes_of(kKeptStates))};
  teacher.tasks = answered(context, stage, teacher.model, nullptr);
  std::vector<eval::ModelScores> scores;
  std::vector<base::Json> of_tasks;
  for (const auto& name : stage.models) {
    stop_if_asked(context, stage);
    context.observer.progress(base::join(stage.name, ": models evaluated"), std::ssize(scores),
                              std::ssize(stage.models));
    auto scored = score_of(context, stage, name, teacher);
    scores.push_back(std::move(scored.scores));
    of_tasks.push_back(std::move(scored.tasks));
  }
  base::Json result;
  context.lead([&] {
    eval::write_documents(context.directory.documents_path(stage.name), scores);
    result = eval::to_json(options.context, options.windows, stage.teacher, scores);
    const auto labels = stage.labels();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      auto& model = result[keys::kModels][i];
      model[keys::kLabel] = labels[i];
      if (!of_tasks[i].is_null()) model[keys::kTasks] = std::move(of_tasks[i]);
    }
    result[keys::kSparsity] = sparsity_changes(context, scores);
    result[keys::kMemoryPlannedBytes] = plan.total_bytes();
  });
  return result;
}

std::optional<StageWork> work_of(const Stage& stage, const KnownModels& models) {
  std::vector<architecture::Config> configs;
  for (const auto& name : stage.models) {
    auto config = models.config(name);
    if (!config) return {};
    configs.push_back(std::move(*config));
  }
  return scoring_work(options_of(stage), configs, std::ssize(stage.data));
}

ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  const auto plan = largest_plan(stage, context.place, context.models);
  ResolvedStage resolved{.lengths = {{"context", options_of(stage).context}},
                         .memory = plan,
                         .check = [&stage](const PlanContext& known) { check(known, stage); }};
  if (const auto work = work_of(stage, context.models)) resolved.work = [work] { return *work; };
  if (plan) resolved.run = [&stage, plan](const Context& running) { return run(running, stage, *plan); };
  return resolved;
}

std::string summary(const base::Json& result) {
  return report::scores_table(result) + report::tasks_table(result) + report::generated_texts(result);
}

}  // namespace

const StageFunctions kEvaluating = {.text_use =
                                        [](const Stage& stage) {
                                          return TextUse{.reads_held_out = true,
                                                         .measures = !options_of(stage).seen};
                                        },
                                    .resolve = resolve,
                                    .summary = summary};

}  // namespace retort::pipeline
