#pragma once
// A model as a Hugging Face directory that a stock class loads.

#include "retort/base/files.h"
#include "retort/io/dtype.h"
#include "retort/publish/padded.h"

namespace retort::publish {

/// Writes config.json, weights in `dtype` (f32, f16 or bf16) and what accompanies the model `from`.  Throws
/// ModelError for a value that `dtype` cannot hold, StorageError.
void write_hf_directory(const PaddedWeights& weights, io::Dtype dtype, const base::Path& from,
                        const base::Path& directory);

}  // namespace retort::publish
