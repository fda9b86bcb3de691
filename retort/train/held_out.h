#pragma once
// The loss on text that a stage does not learn from.

#include <string>
#include <vector>

#include "retort/comm/group.h"
#include "retort/ops/path.h"
#include "retort/record/metrics_line.h"
#include "retort/shard/engine.h"
#include "retort/shard/parameters.h"
#include "retort/train/options.h"

namespace retort::train {

/// Held-out text of one source, as micro-batches.
struct HeldOutSet {
  std::string source;
  std::vector<shard::MicroBatch> batches;
};

/// Nats per token by source, over the tokens of all ranks; nothing where there are no sets.  Collective.
record::NamedNumbers held_out_losses(const std::vector<HeldOutSet>& sets, shard::Parameters& student,
                                     const TrainOptions& options, at::Device device, comm::Group& group);

/// What that takes beside the weights, bytes.
std::int64_t held_out_bytes(const TrainOptions& options, const architecture::Config& student,
                            std::int64_t item_bytes, ops::Path path);

}  // namespace retort::train
