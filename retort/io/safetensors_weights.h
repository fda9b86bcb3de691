#pragma once
// The weights of a Hugging Face directory: model.safetensors, or an index with its shards.

#include <memory>

#include "retort/io/weight_files.h"

namespace retort::io {

/// Throws ModelError (missing, unsound, index and shards contradict each other) or StorageError.
std::unique_ptr<const WeightFiles> open_safetensors_weights(const base::Path& directory);

}  // namespace retort::io
