#pragma once
// The keys of the layers' Options.

#include "retort/calibrate/options.h"
#include "retort/prune/options.h"
#include "retort/recipe/binder.h"
#include "retort/recipe/recipe.h"
#include "retort/sparsify/options.h"

namespace retort::recipe {

/// Whether a kind of training compares with a teacher.
bool has_teacher(StageKind kind);

void bind_source(Binder& binder, data::SourceOptions& source);
void bind_train(Binder& binder, train::TrainOptions& options, StageKind kind);
void bind_prune(Binder& binder, prune::PruneOptions& options);
void bind_sparsify(Binder& binder, sparsify::SparsifyOptions& options);
void bind_profile(Binder& binder, calibrate::ProfileOptions& options);
void bind_evaluate(Binder& binder, eval::EvaluateOptions& options);

}  // namespace retort::recipe
