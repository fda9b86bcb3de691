#pragma once
// The one training loop: from scratch, fine-tuning and distillation differ by losses and teacher, not by
// code.

#include <memory>
#include <string>
#include <vector>

#include "retort/comm/group.h"
#include "retort/data/sequence_stream.h"
#include "retort/loss/losses.h"
#include "retort/optim/weight_rule.h"
#include "retort/record/metrics.h"
#include "retort/record/observer.h"
#include "retort/shard/engine.h"
#include "retort/shard/parameters.h"
#include "retort/train/checkpoint.h"
#include "retort/train/held_out.h"
#include "retort/train/memory_shape.h"
#include "retort/train/options.h"
#include "retort/train/result.h"
#include "retort/train/written_texts.h"

namespace retort::train {

/// Everything that a stage trains with; references live as long as the loop.  Only rank 0 of the group reads
/// text and writes metrics.  All stop where any of them is asked to.
struct TrainSetup {
  std::string stage;
  const TrainOptions& options;
  const StepPlan& plan;  ///< of these models on this machine
  shard::Parameters& student;
  shard::Teacher* teacher = nullptr;
  const loss::Losses& losses;
  const optim::WeightRule* rule = nullptr;  ///< that the student's weights keep to; null: none
  data::SequenceStream* stream = nullptr;
  Writing writing = {};  ///< of options.on_policy
  std::vector<HeldOutSet> held_out;
  CheckpointPlace checkpoints;
  record::Metrics* metrics = nullptr;
  record::Observer& observer;
  comm::Group& group;
  at::Device device;
  at::ScalarType dtype;  ///< of computing
};

struct TrainOutcome {
  bool finished = false;  ///< false: stopped on request, state saved
  Progress progress;
  std::int64_t steps = 0;
  TrainResult result;  ///< where it is finished
};

/// Number of steps for a token budget.
std::int64_t num_steps(const TrainOptions& options);

/// Trains to the end of the budget, or until the observer asks to stop; goes on from a checkpoint when there
/// is one.  Collective.  Throws ValidationError (loss or gradient not finite: no update was made),
/// StorageError, DataError.
TrainOutcome train(TrainSetup& setup);

}  // namespace retort::train
