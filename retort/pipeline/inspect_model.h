#pragma once
// What a model holds that is not used, or not as it stands there, is told before the model is.

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/recipe/recipe.h"
#include "retort/record/observer.h"

namespace retort::pipeline {

/// Reads and checks a model directory but for the values of its weights, and warns of keys of config.json
/// that are not known and of weights of several types.  Throws ModelError.
architecture::Config inspect_model(const base::Path& directory, record::Observer& observer);

/// The same of the configuration that a stage with random weights begins with.
void inspect_config(const recipe::Stage& stage, record::Observer& observer);
/// The configuration of a model whose weights nobody reads, with the same warnings of its keys.
architecture::Config inspect_shape(const base::Path& model, record::Observer& observer);

}  // namespace retort::pipeline
