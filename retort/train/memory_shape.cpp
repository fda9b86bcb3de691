#include "retort/train/memory_shape.h"

#include <algorithm>

#include "retort/loss/chunk.h"
#include "retort/train/batches.h"
#include "retort/train/held_out.h"

namespace retort::train {
namespace {

std::int64_t wave_of(const TrainOptions& options) {
  return options.batch.wave > 0 ? std::min(options.batch.wave, options.batch.accumulate)
                                : options.batch.accumulate;
}

shard::MemoryShape memory_shape(const TrainOptions& options, const architecture::Config& student,
                                const architecture::Config* teacher, const loss::Losses& losses,
                                const optim::RuleNeeds& rule, at::ScalarType dtype, at::Device device,
                                std::int64_t available_bytes, shard::RankCounts ranks) {
  // Of the rank that has most of a step.
  const auto sequences = (options.batch.sequences * options.batch.accumulate + ranks.all - 1) / ranks.all;
  const auto together = std::min(options.batch.sequences, sequences);
  const auto micro_batches = (sequences + together - 1) / together;
  const auto tokens = options.packing.sequence_length * together;
  const auto wave = std::min(wave_of(options), micro_batches);
  const auto item_bytes = static_cast<std::int64_t>(at::elementSize(dtype));
  shard::MemoryShape shape{
      .student = student,
      .teacher = losses.needs_teacher() ? teacher : nullptr,
      .teacher_logits = losses.needs_teacher_logits(),
      .loss_matrices = loss::composed_matrices(losses.on_logits, ops::path_of(device), item_bytes),
      .hidden_losses = std::ssize(losses.on_hidden),
      .rule_bytes = rule.bytes_per_parameter,
      .trained_on_copies = dtype == at::kBFloat16 || rule.own_copies,
      .item_bytes = item_bytes,
      .micro_batch_tokens = tokens,
      .sequence_tokens = options.packing.sequence_length,
      .micro_batches = micro_batches,
      .wave = wave,
      .wave_tokens = std::min(wave * tokens, sequences * options.packing.sequence_length),
      .waiting_bytes = (prepared_sequences(options) + options.packing.shuffle_sequences) *
                       options.packing.sequence_length * data::kSequenceBytesPerToken,
      .head_rows = options.head_rows > 0 ? options.head_rows
                                         : shard::choose_head_rows(student.vocab_size, tokens, item_bytes,
                                                                   ops::path_of(device)),
      .keep_activations = options.recompute != Recompute::always,
      .evaluation_bytes = held_out_bytes(options, student, item_bytes, ops::path_of(device)),
      .path = ops::path_of(device),
      .ranks = ranks.all,
      .ranks_of_memory = ranks.of_common_memory,
      .student_ranks = shard::shard_size(ranks, options.shard.student_ranks),
      .teacher_ranks = shard::shard_size(ranks, options.shard.teacher_ranks)};
  // Keeping activations saves a quarter of the arithmetic; it is worth memory only where there is plenty.
  if (options.recompute == Recompute::automatic)
    shape.keep_activations = shard::plan_memory(shape).total_bytes() <= available_bytes / 4;
  return shape;
}

}  // namespace

StepPlan plan_steps(const TrainOptions& options, const architecture::Config& student,
                    const architecture::Config* teacher, const loss::Losses& losses,
                    const optim::RuleNeeds& rule, at::ScalarType dtype, at::Device device,
                    std::int64_t available_bytes, shard::RankCounts ranks) {
  const auto shape =
      memory_shape(options, student, teacher, losses, rule, dtype, device, available_bytes, ranks);
  return {shard::plan_memory_within(shape, available_bytes),
          {.wave = shape.wave, .head_rows = shape.head_rows, .keep_activations = shape.keep_activations}};
}

}  // namespace retort::train
