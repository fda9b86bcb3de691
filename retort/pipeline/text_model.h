#pragma once
// A model that is about to make texts: what is known before its weights are loaded.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/eval/options.h"
#include "retort/eval/text_weights.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/pipeline.h"

namespace retort::pipeline {

struct TextModel {
  /// Settles how this process computes on the device of the request.  Throws what reading the model's files
  /// throws, and UsageError for an unknown device or type.
  TextModel(const ModelRequest& request, const SamplingRequest& asked, record::Observer& observer);

  /// The same within a run, which has settled that.
  TextModel(const base::Path& model, at::Device where, at::ScalarType type, record::Observer& observer);

  std::int64_t item_bytes() const { return static_cast<std::int64_t>(c10::elementSize(dtype)); }
  /// Reads and packs them.  Throws as model::open_weights.
  eval::TextWeights load() const;

  base::Path path;
  at::Device device;
  architecture::Config config;
  at::ScalarType dtype;
  ModelText text;
  eval::Sampling sampling;
  std::vector<std::int32_t> stop_ids, ids_without_token;
};

}  // namespace retort::pipeline
