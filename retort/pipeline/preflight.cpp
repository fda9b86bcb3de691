#include "retort/pipeline/preflight.h"

#include <algorithm>
#include <set>
#include <utility>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/calibrate/options.h"
#include "retort/calibrate/ranking.h"
#include "retort/data/file_form.h"
#include "retort/data/held_out_part.h"
#include "retort/data/overlap.h"
#include "retort/eval/bootstrap.h"
#include "retort/io/model_directory.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/vocabulary.h"
#include "retort/prune/options.h"
#include "retort/prune/part_scores.h"
#include "retort/record/run_files.h"
#include "retort/sparsify/options.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;
using recipe::StageKind;

class Preflight {
 public:
  Preflight(const recipe::Recipe& recipe, const RunRequest& request, at::ScalarType dtype,
            std::int64_t available_bytes, record::Observer& observer)
      : recipe_(recipe),
        request_(request),
        run_(request.run_directory),
        dtype_(dtype),
        available_bytes_(available_bytes),
        observer_(observer) {}

  void check(const Stage& stage) {
    if (run_.finished(stage.name)) return;
    for (const auto& name : stage.data) check_source(recipe_.source(name));
    for (const auto& name : models_of(stage)) check_model(stage, name);
    if (stage.kind == StageKind::train) check_beginning(stage);
    check_profile(stage);
    check_lengths(stage);
    check_vocabularies(stage);
    check_held_out(stage);
    if (const auto plan = known_memory(recipe_, stage, dtype_, available_bytes_))
      shard::require_fits(*plan, available_bytes_);
  }

 private:
  static std::vector<std::string> models_of(const Stage& stage) {
    auto names = stage.models;
    for (const auto& name : {stage.from, stage.teacher})
      if (!name.empty()) names.push_back(name);
    return names;
  }

  static void check_source(const data::SourceOptions& source) { data::check_files(source); }

  // A directory is opened and its headers are read; values are read by the stage.
  void check_model(const Stage& stage, const std::string& name) {
    if (recipe_.find_stage(name)) {
      base::require<base::UsageError>(request_.only_stage.empty() || run_.finished(name), "stage '",
                                      stage.name, "': needs the model of stage '", name,
                                      "', which is not finished in ", request_.run_directory.string(),
                                      "; run that stage first.");
      return;
    }
    if (name == stage.from || stage.kind == StageKind::select) (void)io::accompanying_files(name);
    std::error_code ignored;
    if (!checked_.insert(std::filesystem::weakly_canonical(name, ignored)).second) return;
    (void)read_model_text(name, inspect_model(name, observer_));
  }

  void check_profile(const Stage& stage) const {
    base::require<base::UsageError>(
        stage.profile.empty() || request_.only_stage.empty() || run_.finished(stage.profile), "stage '",
        stage.name, "': needs the profile of stage '", stage.profile, "', which is not finished in ",
        request_.run_directory.string(), "; run that stage first.");
    const auto* options = std::get_if<prune::PruneOptions>(&stage.options);
    base::require<base::UsageError>(
        stage.profile.empty() || !options ||
            !prune::ranking_options(*options).uses(calibrate::ChannelRanking::taylor),
        "stage '", stage.name,
        "': ranking by taylor needs gradients, which a profile does not hold; leave profile out or choose "
        "another ranking.");
  }

  void check_beginning(const Stage& stage) const {
    std::error_code ignored;
    base::require<base::ModelError>(std::filesystem::exists(stage.tokenizer, ignored), "stage '", stage.name,
                                    "': tokenizer: there is no file or directory '", stage.tokenizer,
                                    "'; give a model directory or a tokenizer.json.");
    (void)read_model_text(stage.tokenizer, starting_config(stage));
    (void)io::accompanying_files(stage.tokenizer);
    inspect_config(stage.config, observer_);
  }

  void check_vocabularies(const Stage& stage) {
    if (stage.teacher.empty()) return;
    auto students = stage.models;
    if (stage.kind == StageKind::distill) students.push_back(stage.from);
    const NamedTokenizer teacher{stage.teacher, tokenizer_of(stage.teacher)};
    for (const auto& name : students) {
      const NamedTokenizer student{name, tokenizer_of(name)};
      if (compared_.insert({student.path, teacher.path}).second)
        (void)require_same_tokens(base::join("stage '", stage.name, "'"), student, teacher);
    }
  }

  static bool needs_held_out(const Stage& stage) {
    const auto* training = std::get_if<train::TrainOptions>(&stage.options);
    return stage.kind == StageKind::evaluate || (training && training->evaluate_every_steps > 0);
  }

  void check_held_out(const Stage& stage) const {
    const auto sources = sources_of(stage);
    for (const auto& source : sources)
      if (needs_held_out(stage) && data::held_out_documents(source, 1) == 0)
        throw base::DataError(base::join("stage '", stage.name,
                                         "': expected held-out documents with text in '", source.name,
                                         "', found none; ", data::held_out_advice(source, 1), "."));
    if (stage.kind != StageKind::select) return;
    const auto& model = stage.models.front();
    const auto found =
        require_documents(stage, sources, read_model_text(tokenizer_of(model), config_of(model)));
    if (found < static_cast<std::int64_t>(eval::kLeastDocuments))
      observer_.message(
          record::Level::warning,
          base::join("stage '", stage.name, "': a source has only ", found,
                     " held-out documents in evaluate_tokens; ", "with fewer than ", eval::kLeastDocuments,
                     " there is no interval, so the least loss alone decides: raise evaluate_tokens or hold "
                     "out more."));
  }

  std::vector<data::SourceOptions> sources_of(const Stage& stage) const {
    std::vector<data::SourceOptions> sources;
    for (const auto& name : stage.data) sources.push_back(recipe_.source(name));
    return sources;
  }

  // A model directory or a file: no stage changes the tokenizer that its line of stages began with.
  base::Path tokenizer_of(const std::string& name) const {
    const Stage* stage = recipe_.find_stage(name);
    if (!stage) return name;
    if (run_.finished(name)) return run_.model_directory(name);
    if (stage->kind == StageKind::train) return stage->tokenizer;
    return tokenizer_of(stage->kind == StageKind::select ? stage->models.front() : stage->from);
  }

  // What a model has that no stage changes, vocabulary and context, it has from where its line of stages
  // began.
  architecture::Config config_of(const std::string& name) const {
    const Stage* stage = recipe_.find_stage(name);
    if (!stage) return architecture::read_config(name);
    if (run_.finished(name)) return architecture::read_config(run_.model_directory(name));
    if (stage->kind == StageKind::train) return starting_config(*stage);
    return config_of(stage->kind == StageKind::select ? stage->models.front() : stage->from);
  }

  void check_lengths(const Stage& stage) const {
    if (const auto* options = std::get_if<train::TrainOptions>(&stage.options)) {
      const auto length = options->packing.sequence_length;
      const auto check = [&](const architecture::Config& config) {
        require_context(stage.name, "packing.sequence_length", length, config);
      };
      if (stage.kind == StageKind::train) check(starting_config(stage));
      if (!stage.from.empty()) check(config_of(stage.from));
      for (const auto& name : stage.models) check(config_of(name));
    }
    if (const auto* options = std::get_if<prune::PruneOptions>(&stage.options))
      require_context(stage.name, "sequence_length", options->sequence_length, config_of(stage.from));
    if (const auto* options = std::get_if<calibrate::ProfileOptions>(&stage.options))
      require_context(stage.name, "sequence_length", options->sequence_length, config_of(stage.from));
    if (const auto* options = std::get_if<sparsify::SparsifyOptions>(&stage.options))
      require_context(stage.name, "sequence_length", options->sequence_length, config_of(stage.from));
    if (const auto* options = std::get_if<eval::EvaluateOptions>(&stage.options))
      for (const auto& name : models_of(stage))
        require_context(stage.name, "context", options->context, config_of(name));
  }

  const recipe::Recipe& recipe_;
  const RunRequest& request_;
  const record::RunFiles run_;
  at::ScalarType dtype_;
  std::int64_t available_bytes_;
  record::Observer& observer_;
  std::set<base::Path> checked_;  ///< directories
  std::set<std::pair<base::Path, base::Path>> compared_;
};

// Sources of the stages that `wanted` accepts.
template <typename Wanted>
std::vector<data::SourceOptions> sources_of(const recipe::Recipe& recipe, Wanted wanted) {
  std::set<std::string> names;
  std::vector<data::SourceOptions> sources;
  for (const auto& stage : recipe.stages)
    for (const auto& name : stage.data)
      if (wanted(stage) && names.insert(name).second) sources.push_back(recipe.source(name));
  return sources;
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

void check_overlaps(const recipe::Recipe& recipe, record::Observer& observer) {
  const auto learned =
      sources_of(recipe, [](const Stage& stage) { return stage.kind != StageKind::evaluate; });
  const auto chosen_by =
      sources_of(recipe, [](const Stage& stage) { return stage.kind == StageKind::select; });
  const auto is_measured = [](const Stage& stage) {
    const auto* options = std::get_if<eval::EvaluateOptions>(&stage.options);
    return options && !options->seen;
  };
  const auto judged = sources_of(
      recipe, [&](const Stage& stage) { return stage.kind == StageKind::select || is_measured(stage); });
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
  warn_of_choices(chosen_by, sources_of(recipe, is_measured), observer);
}

}  // namespace

void preflight(const recipe::Recipe& recipe, const RunRequest& request, at::ScalarType dtype,
               std::int64_t available_bytes, record::Observer& observer) {
  Preflight preflight(recipe, request, dtype, available_bytes, observer);
  for (const auto& stage : recipe.stages)
    if (request.only_stage.empty() || stage.name == request.only_stage) preflight.check(stage);
  if (!record::RunFiles(request.run_directory).holds_run()) check_overlaps(recipe, observer);
}

}  // namespace retort::pipeline
