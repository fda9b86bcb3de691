#pragma once
// The weights of a Hugging Face directory: model.safetensors, or an index with its shards.

#include <memory>
#include <string>
#include <vector>

#include "retort/io/weight_files.h"

namespace retort::io {

/// Adds a sentence to `notes` about files of weights that lie beside and are not read.  Throws ModelError
/// (missing, unsound, index and shards contradict each other) or StorageError.
std::unique_ptr<const WeightFiles> open_safetensors_weights(const base::Path& directory,
                                                            std::vector<std::string>& notes);

}  // namespace retort::io
