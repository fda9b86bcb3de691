#pragma once
// A model that is saved unit by unit, so that nobody has to hold all of it.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/model/weights.h"

namespace retort::model {

struct SavedUnits {
  const architecture::Config& config;
  const architecture::Layout& layout;
  const Lineage& lineage;
  io::Dtype file_dtype;
  /// The values of a unit, flat, on any device; each is asked for a few times, in no order.
  std::function<at::Tensor(std::size_t unit)> values;
};

/// As save_model() of weights.h.
void save_model(const SavedUnits& model, const base::Path& directory, const base::Path& tokenizer_from,
                const base::Json& provenance);

}  // namespace retort::model
