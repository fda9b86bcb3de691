#pragma once
// The bytes of a training run by purpose, known before its first step.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/architecture/layout.h"
#include "retort/ops/path.h"

namespace retort::shard {

/// What decides the memory of a step on one rank.
struct MemoryShape {
  architecture::Config student;
  const architecture::Config* teacher = nullptr;  ///< null when no loss needs one
  bool teacher_logits = false;
  std::int64_t loss_matrices = 0;  ///< loss::composed_matrices() of the losses on logits
  std::int64_t hidden_losses = 0;  ///< number of losses on hidden states
  std::int64_t rule_bytes = 0;     ///< of a parameter, that a rule of the optimizer holds
  bool trained_on_copies = false;  ///< the compute type is not the master's
  std::int64_t item_bytes = 4;     ///< of the compute type
  std::int64_t micro_batch_tokens = 0;
  std::int64_t sequence_tokens = 0;  ///< of one packed sequence: the longest segment
  std::int64_t micro_batches = 1;    ///< of a step
  std::int64_t wave = 1;
  std::int64_t wave_tokens = 0;    ///< of all its micro-batches, of which the last may be smaller
  std::int64_t waiting_bytes = 0;  ///< packed sequences that wait for their step
  std::int64_t head_rows = 256;
  bool keep_activations = false;
  std::int64_t evaluation_bytes = 0;  ///< of a loss on held-out text between two steps, beside weights
  std::int64_t writing_bytes = 0;     ///< of texts that the student writes between two steps, beside weights
  ops::Path path = ops::Path::cpu;    ///< what the operations hold beside their results goes by it
  std::int64_t ranks = 1;             ///< of the group
  std::int64_t ranks_of_memory = 1;   ///< that share one: within them nothing is gathered
  std::int64_t student_ranks = 1, teacher_ranks = 1;  ///< that hold one copy between them
};

struct MemoryItem {
  std::string what;
  std::int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<MemoryItem> items;
  /// What to do when it does not fit.
  std::string advice = "lower batch.sequences, packing.sequence_length or batch.wave, or use a smaller model";
  std::int64_t total_bytes() const;
  /// Of the items of this name; 0 without one.
  std::int64_t bytes_of(std::string_view what) const;
  /// Counts the items of this name once for `ranks` ranks, which hold them between them.
  void share(std::string_view what, std::int64_t ranks);
};

/// Bytes of a rank at the worst moment of a step or an evaluation, by what they hold.
MemoryPlan plan_memory(const MemoryShape& shape);

/// The same for a rank that has so many bytes.  Where they do not suffice, the advice names the least number
/// of ranks, from the present one on, that would.  All models are then sharded over all ranks.
MemoryPlan plan_memory_within(const MemoryShape& shape, std::int64_t available_bytes);

/// Rows of a chunk of the head loop for which its products are large, and its buffers stay near the cache of
/// a CPU, or small beside the memory of an accelerator.
std::int64_t choose_head_rows(std::int64_t vocab_size, std::int64_t micro_batch_tokens,
                              std::int64_t item_bytes, ops::Path path);

/// What the widest block of a model takes in a forward pass without gradients, bytes; `sequence_tokens` of
/// the longest segment.
std::int64_t block_forward_bytes(const architecture::Config& config, std::int64_t tokens,
                                 std::int64_t sequence_tokens, std::int64_t item_bytes, ops::Path path);

/// A table of the plan for people, one item a line.
std::string describe(const MemoryPlan& plan);

/// Elements of units that a rank holds at most while it scores a model whose units it gathers; `holds_head`:
/// the head stays gathered all the while.
std::int64_t gathered_to_score(const architecture::Layout& layout, bool holds_head);

/// Throws MemoryError with the numbers, and what to change, when the plan needs more than `available_bytes`.
void require_fits(const MemoryPlan& plan, std::int64_t available_bytes);

}  // namespace retort::shard
