#pragma once
// What a finished training stage says of itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/record/metrics_line.h"
#include "retort/shard/memory_plan.h"
#include "retort/train/written_texts.h"

namespace retort::train {

struct TrainResult {
  std::int64_t steps = 0, tokens = 0;
  double seconds = 0;               ///< of training, earlier parts of a resumed stage included
  double matrix_product_flops = 0;  ///< per second, of all ranks
  double flops_per_token = 0;
  record::NamedNumbers phase_flops_per_token;      ///< of the phases that have products
  record::NamedNumbers operation_flops_per_token;  ///< of products and attention
  record::MetricsLine final;                       ///< of the last step, with the last held-out losses
  shard::MemoryPlan plan;
  std::int64_t peak_tensor_bytes = 0, process_peak_bytes = 0;
  bool keep_activations = false;
  std::int64_t steps_of_start = 0;            ///< those that the last start made
  std::optional<WrittenCounts> written = {};  ///< of the student, where it wrote
};

/// A stage's result without its kind.
base::Json to_json(const TrainResult& result);

}  // namespace retort::train
