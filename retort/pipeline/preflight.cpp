#include "retort/pipeline/preflight.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "retort/base/error.h"
#include "retort/data/file_form.h"
#include "retort/data/held_out_part.h"
#include "retort/data/overlap.h"
#include "retort/data/source_files.h"
#include "retort/io/model_directory.h"
#include "retort/pipeline/generated_text.h"
#include "retort/pipeline/input_files.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/tasks.h"
#include "retort/pipeline/vocabulary.h"
#include "retort/record/run_files.h"
#include "retort/train/trainer.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

class Preflight {
 public:
  Preflight(const PlanContext& context, const RunRequest& request)
      : context_(context), request_(request), read_(files_read(record::RunFiles(request.run_directory))) {}

  // What a model wrote for it, when that is there.
  void check_text(const Stage& stage, const ResolvedStage* resolved) {
    if (text_use_of(stage).reads_held_out) check_held_out(stage);
    warn_of_same_text(stage);
    if (resolved && resolved->check) resolved->check(context_);
  }
  void check(const Stage& stage) {
    if (!context_.models.finished(stage.name)) in_stage(stage, [&] { check_unfinished(stage); });
  }
  CheckedStages checked() && { return std::move(stages_); }

 private:
  void check_unfinished(const Stage& stage) {
    const bool has_text = check_sources(stage);
    for (const auto& name : stage.models_read()) check_model(stage, name);
    if (!stage.profile.empty()) require_finished(stage, "profile", stage.profile);
    auto resolved = functions_of(stage.kind).resolve(context_, stage);
    for (const auto& length : resolved.lengths) check_length(stage, length);
    check_vocabularies(stage);
    if (text_use_of(stage).reads_held_out) check_held_out(stage);
    if (!read_.empty()) require_same_inputs(stage, input_files(context_.recipe, stage), read_);
    warn_of_same_text(stage);
    warn_of_warmup(stage);
    if (resolved.memory) shard::require_fits(*resolved.memory, context_.place.bytes_of_rank());
    if (resolved.check && has_text) resolved.check(context_);
    const auto is_there = [this](const auto& name) { return context_.models.path(name).has_value(); };
    if (!std::ranges::all_of(stage.models_read(), is_there)) resolved.run = nullptr;
    stages_.emplace(stage.name, std::move(resolved));
  }

  // Text that a model is still to write is checked when it is there; false where there is such.
  bool check_sources(const Stage& stage) {
    bool all_there = true;
    for (const auto& source : context_.recipe.sources(stage)) {
      if (is_there(source)) {
        data::check_files(source);
        continue;
      }
      all_there = false;
      check_model(stage, source.generated.model);
      const auto planned = planned_text(context_, source);
      if (planned.memory) shard::require_fits(*planned.memory, context_.place.bytes_of_rank());
    }
    return all_there;
  }

  void require_finished(const Stage& stage, const char* what, const std::string& earlier) const {
    base::require<base::UsageError>(request_.only_stage.empty() || context_.models.finished(earlier),
                                    "stage '", stage.name, "': needs the ", what, " of stage '", earlier,
                                    "', which is not finished in ", request_.run_directory.string(),
                                    "; run that stage first.");
  }

  // A directory is opened and its headers are read; values are read by the stage.
  void check_model(const Stage& stage, const std::string& name) {
    if (context_.recipe.find_stage(name)) return require_finished(stage, "model", name);
    if (std::ranges::count(stage.origins(), name) > 0) (void)io::accompanying_files(name);
    std::error_code ignored;
    if (!opened_.insert(std::filesystem::weakly_canonical(name, ignored)).second) return;
    (void)read_model_text(name, inspect_model(name, context_.observer));
  }

  void check_length(const Stage& stage, const SequenceLength& length) const {
    for (const auto& name : stage.models_read())
      require_context(stage.name, length.key, length.tokens, context_.models.config_of_line(name));
  }

  void check_vocabularies(const Stage& stage) {
    if (stage.teacher.empty()) return;
    auto students = stage.models;
    if (!stage.from.empty()) students.push_back(stage.from);
    const NamedTokenizer teacher{stage.teacher, context_.models.tokenizer_of_line(stage.teacher)};
    for (const auto& name : students) {
      const NamedTokenizer student{name, context_.models.tokenizer_of_line(name)};
      if (compared_.insert({student.path, teacher.path}).second)
        (void)require_same_tokens(base::join("stage '", stage.name, "'"), student, teacher);
    }
  }

  void check_held_out(const Stage& stage) const {
    for (const auto& source : those_there(context_.recipe.sources(stage)))
      if (data::held_out_documents(source, 1) == 0)
        throw base::DataError(base::join("stage '", stage.name,
                                         "': expected held-out documents with text in '", source.name,
                                         "', found none; ", data::held_out_advice(source, 1), "."));
  }

  // Two names for one text give its documents twice the weight, and an interval that is too narrow.
  void warn_of_same_text(const Stage& stage) const {
    std::map<std::vector<std::vector<base::Path>>, std::map<std::string, std::string>> names;
    for (const auto& source : those_there(context_.recipe.sources(stage))) {
      std::vector<std::vector<base::Path>> files;
      for (const auto* paths : {&source.paths, &source.held_out.paths})
        files.push_back(paths->empty() ? std::vector<base::Path>() : data::expand_paths(source.name, *paths));
      const auto [first, is_new] = names[files].emplace(source.field, source.name);
      if (!is_new)
        context_.observer.message(
            record::Level::warning,
            base::join("stage '", stage.name, "': data.", first->second, " and data.", source.name,
                       " read the same text, so it counts twice; name one of them."));
    }
  }

  void warn_of_warmup(const Stage& stage) const {
    const auto* options = std::get_if<train::TrainOptions>(&stage.options);
    if (!options || options->optim.warmup_steps <= train::num_steps(*options)) return;
    context_.observer.message(
        record::Level::warning,
        base::join("stage '", stage.name, "': optim.warmup_steps is ", options->optim.warmup_steps,
                   ", and the stage has ", train::num_steps(*options),
                   " steps, so its learning rate never gets to optim.lr."));
  }

  const PlanContext& context_;
  const RunRequest& request_;
  const FilesRead read_;
  CheckedStages stages_;
  std::set<base::Path> opened_;  ///< directories
  std::set<std::pair<base::Path, base::Path>> compared_;
};

// Sources of the stages whose use of text `wanted` accepts.
template <typename Wanted>
std::vector<data::SourceOptions> sources_where(const recipe::Recipe& recipe, Wanted wanted) {
  std::set<std::string> names;
  std::vector<data::SourceOptions> sources;
  for (const auto& stage : recipe.stages)
    for (const auto& name : stage.data)
      if (wanted(text_use_of(stage)) && names.insert(name).second) sources.push_back(recipe.source(name));
  return those_there(sources);
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "data." : ", data.") + name;
  return list;
}

// A choice by the documents that a score is measured on makes the score a little too good.
void warn_of_choices(const std::vector<data::SourceOptions>& chosen_by,
                     const std::vector<data::SourceOptions>& measured, record::Observer& observer) {
  const auto warn = [&](const std::string& used, const std::string& what) {
    observer.message(
        record::Level::warning,
        base::join("run: a select stage chooses by held-out documents of data.", used, ", and ", what,
                   "; where they are the same the chosen model looks a little better than "
                   "it is, so give the select stage a source of other documents."));
  };
  std::vector<data::SourceOptions> others;
  for (const auto& source : chosen_by) {
    const bool same = std::any_of(measured.begin(), measured.end(),
                                  [&](const auto& other) { return other.name == source.name; });
    if (same)
      warn(source.name, "an evaluate stage measures them");
    else
      others.push_back(source);
  }
  const auto overlaps = data::overlaps(others, data::Split::held_out, measured);
  for (const auto& overlap : overlaps.found)
    warn(overlap.used, base::join(overlap.documents, " of them are among those of data.", overlap.measured,
                                  ", which an evaluate stage measures"));
  for (const auto& used : overlaps.unread)
    warn(used, "its text is too long (1 GiB) to look for those that an evaluate stage measures");
}

std::vector<data::MeasuredTexts> texts_of_tasks_in(const recipe::Recipe& recipe) {
  std::vector<data::MeasuredTexts> all;
  for (const auto& stage : recipe.stages)
    if (const auto* options = std::get_if<eval::EvaluateOptions>(&stage.options); options && !options->seen)
      std::ranges::move(texts_of_tasks(options->tasks), std::back_inserter(all));
  return all;
}

void refuse_tasks_in(const std::vector<data::SourceOptions>& learned, const recipe::Recipe& recipe,
                     record::Observer& observer) {
  if (learned.empty()) return;
  const auto overlaps = data::overlaps(learned, texts_of_tasks_in(recipe));
  for (const auto& overlap : overlaps.found)
    throw base::DataError(base::join("data.", overlap.used,
                                     ": expected no document of a task that the run is evaluated on, found ",
                                     overlap.documents, " of task ", overlap.measured,
                                     " in the part to learn from; leave them out of the text, or, where an "
                                     "evaluate stage measures them on "
                                     "purpose, give it seen: true."));
  if (!overlaps.unread.empty())
    observer.message(record::Level::warning,
                     base::join("run: ", listed(overlaps.unread),
                                " were not searched for documents of the tasks that the run is evaluated "
                                "on, because their text is longer than 1 GiB."));
}

void check_overlaps(const recipe::Recipe& recipe, record::Observer& observer) {
  const auto learned = sources_where(recipe, [](const TextUse& use) { return use.learns; });
  const auto chosen_by = sources_where(recipe, [](const TextUse& use) { return use.chooses; });
  const auto measured = sources_where(recipe, [](const TextUse& use) { return use.measures; });
  const auto judged = sources_where(recipe, [](const TextUse& use) { return use.chooses || use.measures; });
  refuse_tasks_in(learned, recipe, observer);
  const auto training = data::overlaps(learned, data::Split::training, judged);
  for (const auto& overlap : training.found)
    throw base::DataError(base::join(
        "data.", overlap.used, ": expected no document that the run is evaluated on or chooses by, found ",
        overlap.documents, " held-out documents of data.", overlap.measured,
        " in the part to learn from; give both sources the same separator and the same held_out.fraction or "
        "held_out.path, or, "
        "where an "
        "evaluate stage measures them on purpose, this stage seen: true."));
  if (!training.unread.empty())
    observer.message(
        record::Level::warning,
        base::join(
            "run: ", listed(training.unread),
            " were not searched for documents that the run is evaluated on or chooses by, because their "
            "text is longer than 1 GiB; the same separator and the same held_out.fraction or held_out.path "
            "for all sources keep them apart without a search."));
  warn_of_choices(chosen_by, measured, observer);
}

}  // namespace

void check_written_text(const PlanContext& context, const RunRequest& request, const recipe::Stage& stage,
                        const ResolvedStage* resolved) {
  Preflight(context, request).check_text(stage, resolved);
  check_overlaps(context.recipe, context.observer);
}

CheckedStages preflight(const PlanContext& context, const RunRequest& request) {
  Preflight preflight(context, request);
  for (const auto& stage : context.recipe.stages)
    if (request.only_stage.empty() || stage.name == request.only_stage) preflight.check(stage);
  // Stages that were added or changed may measure what an earlier one learned from.
  const record::RunFiles run(request.run_directory);
  if (!run.holds_run() || run.recipe() != recipe::to_json(context.recipe))
    check_overlaps(context.recipe, context.observer);
  return std::move(preflight).checked();
}

}  // namespace retort::pipeline
