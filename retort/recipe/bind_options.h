#pragma once
// The keys of the layers' Options; a kind of stage with many keys has a file of its own, bind_<kind>.cpp.

#include "retort/calibrate/options.h"
#include "retort/data/options.h"
#include "retort/eval/options.h"
#include "retort/prune/options.h"
#include "retort/publish/options.h"
#include "retort/recipe/binder.h"
#include "retort/sparsify/options.h"
#include "retort/train/options.h"

namespace retort::recipe {

void bind_source(Binder& binder, data::SourceOptions& source);
/// `is_given`: the source has such text.
void bind_generated(Binder& binder, data::GeneratedText& text, bool is_given);
/// `with_teacher`: losses that compare with a teacher may be asked for, and are the default.
void bind_train(Binder& binder, train::TrainOptions& options, bool with_teacher);
void bind_prune(Binder& binder, prune::PruneOptions& options);
/// What a candidate of prune, or a sparse layer, costs.
void bind_objective(Binder& binder, calibrate::ObjectiveWeights& objective);
/// What a time is bounded by and of what it is taken, among the keys of a target.
void bind_time(Binder& binder, eval::TimeTarget& target);
void bind_target_of_select(Binder& binder, eval::TimeTarget& target);
/// Reports a map that has none, or several, of `keys`; `expected` names them.
void require_one(Binder& binder, const std::vector<const char*>& keys, const char* expected);
void bind_sparsify(Binder& binder, sparsify::SparsifyOptions& options);
void bind_profile(Binder& binder, calibrate::ProfileOptions& options);
void bind_export(Binder& binder, publish::ExportOptions& options);
void bind_evaluate(Binder& binder, eval::EvaluateOptions& options);

}  // namespace retort::recipe
