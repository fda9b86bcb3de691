#pragma once
// What a recipe knows of each kind of stage: a row for each.  What a run does with it is in
// pipeline/stages.h.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "retort/recipe/binder.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {

/// The keys of a stage that name models: earlier stages of its recipe, or directories.
class StageKeys {
 public:
  StageKeys(Binder& binder, Recipe& recipe, std::size_t index)
      : binder_(binder), recipe_(recipe), index_(index) {}

  Stage& stage() const { return recipe_.stages[index_]; }
  Binder& binder() const { return binder_; }

  /// `from`: the model that the stage starts from.
  void from();
  /// `teacher`: the model that others are compared with.
  void teacher(const Field& field = {.doc = "earlier stage or directory of the teacher", .required = true});
  /// `models`: those that the stage compares.
  void models(const char* doc);
  /// `as`: names for the models.
  void as();
  /// `profile`: an earlier stage that profiled the model of `from`.
  void profile();

 private:
  void check_model(const char* key, const std::string& model);
  void check_profile();

  Binder& binder_;
  Recipe& recipe_;
  std::size_t index_;
};

struct StageTraits {
  StageKind kind;
  std::string_view name;       ///< the word that a recipe uses
  bool reads_text = true;      ///< of the sources that its `data` names
  bool makes_model = false;    ///< that later stages may name
  bool makes_files = false;    ///< in a folder of its own, besides its result
  bool decides_shape = false;  ///< of its model: what stays is known when it is made
  bool makes_sparse = false;   ///< its model has 2:4 sparse layers
  StageOptions (*defaults)(std::uint64_t seed);
  void (*bind_models)(StageKeys& keys);
  void (*bind_options)(Binder& binder, StageOptions& options);
};

/// In the order of StageKind.
std::span<const StageTraits> stage_kinds();
const StageTraits& traits_of(StageKind kind);

}  // namespace retort::recipe
