#pragma once
// The language part of a model that also sees or hears: its tensors under the names that they have in a model
// of text alone.

#include <memory>

#include "retort/io/weight_files.h"

namespace retort::io {

/// Tensors of transformers 4 (language_model.model.*, language_model.lm_head.*) and 5
/// (model.language_model.*) without these prefixes; those of other parts are not there.  Files without such
/// names stay as they are.
std::unique_ptr<const WeightFiles> language_part(std::unique_ptr<const WeightFiles> whole);

}  // namespace retort::io
