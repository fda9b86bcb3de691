#pragma once
// One optimizer step's forward and backward, for training from scratch, fine-tuning and distillation alike.
//
// A model is a row of units; the engine acquires, releases and reduces them and never looks at how they are
// stored. Micro-batches advance in waves: every micro-batch of a wave passes a block before the next block is
// acquired.  Forward keeps block inputs only; backward walks the blocks from the last, computing one block
// again at a time.  Where losses compare hidden states, the teacher follows the student, so that one of its
// states lives only until it has become a gradient of the student's.  Else it goes first.
//
// Shape legend: N tokens of a micro-batch, D hidden.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "retort/comm/group.h"
#include "retort/loss/losses.h"
#include "retort/model/tokens.h"
#include "retort/shard/acquired_unit.h"
#include "retort/shard/parameters.h"
#include "retort/shard/phases.h"
#include "retort/shard/teacher.h"

namespace retort::shard {

struct EngineOptions {
  std::int64_t wave = 1;          ///< micro-batches that advance together
  std::int64_t head_rows = 256;   ///< rows of a chunk of the head loop
  bool keep_activations = false;  ///< keep what backward needs instead of computing it again
};

/// Means over the whole step and the whole group.
struct StepResult {
  double loss = 0;               ///< weighted, over all targets
  loss::LossSums parts;          ///< unweighted, by name; of text, none where all was written by the student
  loss::LossSums written_parts;  ///< of what the student wrote
  std::int64_t tokens = 0;       ///< of all ranks
  std::int64_t targets = 0;
  std::int64_t written_targets = 0;  ///< of these, in what the student wrote
  double own = 0;                    ///< what result() was given to read, of this rank alone
};

/// Computes a step.  Knows of the losses what loss/loss.h says, of the parameters what parameters.h says.
class Engine {
 public:
  /// All references have to outlive the engine; `teacher` may be null when no loss needs one.  `clock` is
  /// told the phases of a step, and is in its former phase afterwards.  `on_written`: losses, on logits
  /// alone, of micro-batches that the student wrote; null where there are none.
  Engine(Parameters& student, Teacher* teacher, const loss::Losses& losses, comm::Group& group,
         PhaseClock& clock, EngineOptions options, const loss::Losses* on_written = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Forward and backward of this rank's micro-batches, which may be none; the student's gradients hold the
  /// sum over the group afterwards.  `most_batches`: of any rank, so that all pass the same waves.  Does not
  /// wait for the device.  Collective.
  void forward_backward(std::span<const MicroBatch> batches, std::int64_t most_batches);
  /// What that came to.  `own` is a float64 scalar on the student's device that the caller wants to know too.
  /// This is the one reading of a step, and waits for the device.  Collective.
  StepResult result(const at::Tensor& own);
  /// Both.
  StepResult step(std::span<const MicroBatch> batches, std::int64_t most_batches) {
    forward_backward(batches, most_batches);
    return result({});
  }
  /// The same in a group of one, or where every rank has as many.
  StepResult step(std::span<const MicroBatch> batches) { return step(batches, std::ssize(batches)); }

 private:
  struct Wave;
  /// One block's part of one loss on hidden states.
  struct Comparison {
    const loss::HiddenLoss* loss;
    std::int64_t place;                 ///< in losses_.all()
    std::int64_t block, teacher_block;  ///< teacher_block -1: the loss needs none
  };
  AcquiredUnit acquired(std::int64_t unit);
  void prefetch(std::int64_t unit);
  at::Tensor gradient(std::int64_t unit);
  void begin_teacher(Wave& wave, std::span<const MicroBatch> batches);
  void embed(Wave& wave);
  void forward_block(Wave& wave, std::int64_t block);
  void compare_hidden(Wave& wave);
  void head(Wave& wave);
  void backward_block(Wave& wave, std::int64_t block);
  void backward_embedding(Wave& wave);
  /// Waits for the counts of the step, which every loss divides by.
  void wait_for_counts();
  /// The losses of a micro-batch.
  const loss::Losses& losses_of(const MicroBatch& batch) const;
  StepResult result_of(std::vector<double> sums);

  Parameters& student_;
  Teacher* teacher_;
  const loss::Losses& losses_;
  const loss::Losses* on_written_;
  comm::Group& group_;
  PhaseClock& clock_;
  EngineOptions options_;
  std::vector<Comparison> comparisons_;  // in the order in which the teacher reaches their blocks
  TeacherNeeds needs_;
  AskingStep asking_;
  model::RopeFrequencies frequencies_;
  // Of this rank, then of the step.
  struct Counts {
    double tokens = 0, targets = 0, written_tokens = 0, written_targets = 0;
  };
  Counts counts_;
  comm::Handle counting_;
  double step_tokens_ = 0, step_targets_ = 0;
  bool last_wave_ = false;
  at::Tensor sums_L_;  // of each loss, in the order of losses_.all(), and behind them of on_written_
};

}  // namespace retort::shard
