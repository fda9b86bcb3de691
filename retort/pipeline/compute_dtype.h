#pragma once
// Which type a run computes in.

#include <ATen/core/Tensor.h>

#include <optional>

#include "retort/base/files.h"
#include "retort/bench/matrix_product.h"
#include "retort/recipe/recipe.h"

namespace retort::pipeline {

struct ComputeDtype {
  std::string name;                          ///< "fp32" or "bf16"
  std::optional<bench::TypeRates> measured;  ///< what it was chosen by, where it was chosen here
};

/// `auto` as the run in `run_directory` began, and where none has begun what is faster for the models that
/// the recipe trains.  A GPU takes bf16, which halves its memory; a recipe that trains nothing fp32.  Another
/// dtype is taken as it stands.
ComputeDtype compute_dtype(const recipe::Recipe& recipe, const base::Path& run_directory, at::Device device);

/// The largest product of the first training stage whose model is described by a file; nothing where none is.
std::optional<bench::ProductShape> trained_product(const recipe::Recipe& recipe);

/// {"rows", "inner", "columns", "fp32_flops", "bf16_flops"}
base::Json to_json(const bench::TypeRates& rates);

}  // namespace retort::pipeline
