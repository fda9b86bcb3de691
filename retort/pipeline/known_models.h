#pragma once
// What is known of a run's models before the stages that make them have run.

#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/model/lineage.h"
#include "retort/recipe/recipe.h"
#include "retort/record/run_files.h"

namespace retort::pipeline {

/// The configuration of a stage that begins with random weights, from a config.json or a GGUF file.  Keys
/// that are not known are added to `notes`, a sentence each.  Throws ModelError.
architecture::Config starting_config(const recipe::Stage& stage, std::vector<std::string>* notes = nullptr);

class KnownModels {
 public:
  /// Without a run no stage is finished.
  explicit KnownModels(const recipe::Recipe& recipe, std::optional<record::RunFiles> run = {})
      : recipe_(recipe), run_(std::move(run)) {}

  /// The same where models that are still to be pruned count as they are before, and of those that are still
  /// to be chosen the largest.
  KnownModels unpruned() const;
  /// The same where every stage counts as finished, though a rank may see its result late.
  KnownModels as_made() const;

  bool finished(const std::string& stage) const { return run_ && run_->finished(stage); }
  /// The directory of a model, or nothing while the stage that makes it is not finished.
  std::optional<base::Path> path(const std::string& name) const;
  /// Its configuration: nothing while a stage is still to choose it.  Throws ModelError.
  std::optional<architecture::Config> config(const std::string& name) const;
  /// Which blocks are left in a model with a known configuration.  Which layers are sparse, only one says
  /// that is there.  Throws ModelError.
  model::Lineage lineage(const std::string& name) const;
  /// Whether it has sparse layers, or a stage on its line makes some.  Throws ModelError.
  bool is_sparse(const std::string& name) const;

  /// A configuration with the vocabulary and the context of a model, which no stage changes: its own, or that
  /// of the model that its line of stages begins with.  Throws ModelError.
  architecture::Config config_of_line(const std::string& name) const;
  /// That of the model that its line of stages begins with, whatever is finished.  Throws ModelError.
  architecture::Config config_of_origin(const std::string& name) const;
  /// What a run was begun with for a stage; null without a run, and for a stage that has not begun.
  base::Json recorded(const std::string& stage) const;
  /// The directory or file of its tokenizer, found as config_of_line() finds it.
  base::Path tokenizer_of_line(const std::string& name) const;

 private:
  // The largest of the models that a stage takes or chooses from.
  std::string origin_of(const recipe::Stage& stage) const;

  const recipe::Recipe& recipe_;
  std::optional<record::RunFiles> run_;
  bool unpruned_ = false, made_ = false;
};

}  // namespace retort::pipeline
