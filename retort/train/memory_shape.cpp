#include "retort/train/memory_shape.h"

#include <algorithm>
#include <cmath>

#include "retort/architecture/layout.h"
#include "retort/base/index.h"
#include "retort/eval/memory_plan.h"
#include "retort/loss/chunk.h"
#include "retort/train/batches.h"
#include "retort/train/held_out.h"
#include "retort/train/written_texts.h"

namespace retort::train {
namespace {

std::int64_t wave_of(const TrainOptions& options) {
  return options.batch.wave > 0 ? std::min(options.batch.wave, options.batch.accumulate)
                                : options.batch.accumulate;
}

// More at once make no text faster where weights are read once for all of them.
constexpr std::int64_t kMostTextsAtOnce = 64;

// Sequences of a step, at most: a share that is no whole number is a little more in some steps.
struct Kinds {
  std::int64_t text, written;
};
Kinds most_of_kinds(const TrainOptions& options, std::int64_t sequences) {
  const double written = options.on_policy.share * static_cast<double>(sequences);
  return {sequences - static_cast<std::int64_t>(std::floor(written)),
          static_cast<std::int64_t>(std::ceil(written))};
}

std::int64_t most_texts_of_rank(const TrainOptions& options, std::int64_t ranks) {
  const auto written = most_of_kinds(options, options.batch.sequences * options.batch.accumulate).written;
  const auto texts = written * texts_of_sequence(options.on_policy, options.packing.sequence_length);
  return std::max<std::int64_t>(1, (texts + ranks - 1) / ranks);
}

// Weights in the order of products, keys and values, and the work of a pass.  Where ranks share no memory
// each has a copy of what is not packed too.
std::int64_t writing_bytes(const TrainOptions& options, const shard::MemoryShape& shape,
                           std::int64_t texts_at_once) {
  const auto& how = options.on_policy;
  if (how.share <= 0) return 0;
  const std::vector<eval::Prompt> prompts(
      base::to_size(most_texts_of_rank(options, shape.ranks)),
      {.ids = std::vector<std::int32_t>(base::to_size(how.prompt_tokens))});
  const eval::TextsOptions texts{.max_new_tokens = how.max_new_tokens, .texts_at_once = texts_at_once};
  const auto plan = eval::plan_texts(shape.student, shape.item_bytes, prompts, texts, shape.path,
                                     eval::WeightsFrom::memory);
  const auto bytes = plan.total_bytes() - plan.bytes_of(eval::kModelWeights);
  if (shape.student_ranks <= shape.ranks_of_memory) return bytes;
  const auto layout = architecture::make_layout(shape.student);
  return bytes +
         shape.item_bytes * (shape.path == ops::Path::cpu ? layout.units.front().size : layout.size());
}

// As many as there is room for beside what stays.
std::int64_t choose_texts_at_once(const TrainOptions& options, shard::MemoryShape& shape,
                                  std::int64_t available_bytes) {
  auto texts = std::min(kMostTextsAtOnce, most_texts_of_rank(options, shape.ranks));
  for (;; texts /= 2) {
    shape.writing_bytes = writing_bytes(options, shape, texts);
    if (texts == 1 || shard::plan_memory(shape).total_bytes() <= available_bytes) return texts;
  }
}

shard::MemoryShape memory_shape(const TrainOptions& options, const architecture::Config& student,
                                const architecture::Config* teacher, const loss::Losses& losses,
                                const optim::RuleNeeds& rule, at::ScalarType dtype, at::Device device,
                                std::int64_t available_bytes, shard::RankCounts ranks) {
  // Of the rank that has most of a step.
  const auto of_step = options.batch.sequences * options.batch.accumulate;
  const auto sequences = (of_step + ranks.all - 1) / ranks.all;
  const auto kinds = most_of_kinds(options, of_step);
  const auto together = std::min({options.batch.sequences, sequences, std::max(kinds.text, kinds.written)});
  // Text and what the student writes are in batches of their own.
  const bool writes = options.on_policy.share > 0;
  const auto batches = [&](std::int64_t of) { return (of + together - 1) / together; };
  const auto micro_batches =
      std::min(batches(sequences) + (writes ? 1 : 0), batches(kinds.text) + batches(kinds.written));
  const auto tokens = options.packing.sequence_length * together;
  const bool all = options.batch.wave <= 0;
  const auto wave = std::min(wave_of(options) + (writes && all ? 1 : 0), micro_batches);
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
  auto shape = memory_shape(options, student, teacher, losses, rule, dtype, device, available_bytes, ranks);
  const auto texts = options.on_policy.share > 0 ? choose_texts_at_once(options, shape, available_bytes) : 1;
  return {shard::plan_memory_within(shape, available_bytes),
          {.wave = shape.wave, .head_rows = shape.head_rows, .keep_activations = shape.keep_activations},
          texts};
}

}  // namespace retort::train
