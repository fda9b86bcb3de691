#pragma once
// A recipe is a run: one YAML file with sources of text and a row of stages.  Every key is a field of some
// layer's Options, named once in binding.cpp, which serves for reading, writing and documenting. Keys are
// strict; all mistakes of a recipe are reported at once, with file, line, key path and nearest key. Paths are
// relative to the current directory, as arguments of a command are.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/calibrate/options.h"
#include "retort/data/options.h"
#include "retort/eval/options.h"
#include "retort/prune/options.h"
#include "retort/publish/options.h"
#include "retort/sparsify/options.h"
#include "retort/train/options.h"

namespace retort::recipe {

enum class StageKind { train, finetune, profile, prune, sparsify, distill, select, evaluate, export_model };

/// The word that a recipe uses: "finetune".
std::string_view name(StageKind kind);

/// Options of the kinds: train, finetune, distill and select share TrainOptions.
using StageOptions = std::variant<train::TrainOptions, prune::PruneOptions, sparsify::SparsifyOptions,
                                  eval::EvaluateOptions, calibrate::ProfileOptions, publish::ExportOptions>;

struct Stage {
  std::string name;
  StageKind kind = StageKind::finetune;
  std::string from;  ///< model to start from: an earlier stage or a directory; empty: train, select, evaluate
  std::string teacher;  ///< distill, select, evaluate (default: the first of models): a stage or a directory
  std::vector<std::string> models;  ///< select, evaluate: stages or directories
  std::vector<std::string> as;      ///< evaluate: what tables call the models; empty: labels() are short
  std::string config;               ///< train: path of a config.json
  std::string tokenizer;          ///< train: path of a directory with tokenizer files, or of a tokenizer.json
  std::string profile;            ///< prune: an earlier stage of kind profile, of the same model; empty: none
  std::vector<std::string> data;  ///< names of sources; empty for a kind that reads no text
  eval::TimeTarget target = {};   ///< select: what the chosen model must keep to, where it is given
  StageOptions options;

  /// The models that its own may be made of: `from`, or those that it chooses from.  Empty: random weights.
  std::vector<std::string> origins() const;
  /// What tables call its models: `as`, or the end of each path that no other model shares.
  std::vector<std::string> labels() const;
  /// Every model that it reads.
  std::vector<std::string> models_read() const;
};

struct Recipe {
  std::int64_t version = 1;
  std::string device = "cpu";     ///< "cpu", "cuda" or "privateuseone"
  std::string dtype = "auto";     ///< of computing: "auto", "fp32" or "bf16"
  std::uint64_t seed = 0;         ///< of every stage that names none
  std::int64_t memory_bytes = 0;  ///< that the run may use; 0: what the machine has
  std::vector<data::SourceOptions> data;
  std::vector<Stage> stages;

  /// Null when there is no such stage.
  const Stage* find_stage(std::string_view name) const;
  /// Throws UsageError naming the nearest stage.
  const Stage& stage(std::string_view name) const;
  /// The source of this name; a recipe that was read holds every source that its stages name.
  const data::SourceOptions& source(std::string_view name) const;
  /// The sources that a stage names; those of a stage that trains weigh as their budgets of tokens say.
  std::vector<data::SourceOptions> sources(const Stage& stage) const;
};

/// Reads a file; `overrides` are "stages.student.optim.lr=1e-5" and the like.  Throws UsageError with all
/// mistakes.
Recipe read_recipe(const base::Path& path, std::span<const std::string> overrides = {});
/// The same for a text; `where` stands for the file's name in messages.
Recipe parse_recipe(std::string_view text, const std::string& where,
                    std::span<const std::string> overrides = {});

/// The recipe.yaml of a run, which an earlier version may have written: like read_recipe(), and passes over
/// the keys of stages that are read no more.
Recipe read_recorded_recipe(const base::Path& path);
/// Keys of stages that earlier versions wrote and that are read no more.
std::vector<std::string> former_stage_keys();

/// Everything, with all defaults filled in, in stable order; data and stages are objects keyed by name, so
/// that a difference reads stages.student.optim.lr.
base::Json to_json(const Recipe& recipe);
/// The same as a recipe file, which reads back as an equal recipe.
std::string to_yaml(const Recipe& recipe);

/// All keys with type, default and one line of documentation.
std::string describe_keys();

/// The recipe inside the program, recipes/quickstart.yaml.
std::string_view quickstart();

}  // namespace retort::recipe
