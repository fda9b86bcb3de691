#pragma once
// Does a model directory hold exactly the tensors that its configuration asks for?

#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/io/dtype.h"
#include "retort/io/model_directory.h"

namespace retort::architecture {

/// Checks names, shapes and dtypes (f32, f16, bf16); throws ModelError for the first that is wrong.
void check_tensors(const Config& config, const io::ModelDirectory& directory);

/// The dtype of the most weights of a checked directory; it is what a copy is saved in.
io::Dtype weight_dtype(const Config& config, const io::ModelDirectory& directory);

}  // namespace retort::architecture
