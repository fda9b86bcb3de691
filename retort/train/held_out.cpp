#include "retort/train/held_out.h"

#include <algorithm>

#include "retort/eval/evaluate.h"
#include "retort/eval/held_head.h"
#include "retort/eval/memory_plan.h"
#include "retort/eval/score.h"
#include "retort/model/packed_text.h"

namespace retort::train {
namespace {

// Rows of a chunk of logits of held-out text.
std::int64_t held_out_head_rows(const TrainOptions& options) {
  return options.head_rows > 0 ? options.head_rows : eval::BatchSettings{}.head_rows;
}

// Batches are dealt to the ranks; one that has none left passes the last along with the others.
double held_out_loss(const HeldOutSet& set, const eval::HeadScorer& scorer, shard::Parameters& student,
                     const TrainOptions& options, at::Device device, comm::Group& group) {
  double sums[2] = {0, 0};
  const auto ranks = static_cast<std::size_t>(group.size());
  for (std::size_t first = 0; first < set.batches.size(); first += ranks) {
    const auto mine = first + static_cast<std::size_t>(group.rank());
    const auto& batch = set.batches[std::min(mine, set.batches.size() - 1)];
    const auto layout = model::make_token_layout(student.config(), batch.starts, device);
    const auto hidden_ND = eval::forward_hidden(student, batch.ids_N, layout);
    if (mine >= set.batches.size()) continue;
    const auto scores =
        eval::score_hidden(scorer, hidden_ND, nullptr, {}, batch.targets_N, held_out_head_rows(options));
    sums[0] += scores.nll;
    sums[1] += static_cast<double>(scores.targets);
  }
  group.all_sum(sums);
  return sums[0] / std::max(1.0, sums[1]);
}

}  // namespace

record::NamedNumbers held_out_losses(const std::vector<HeldOutSet>& sets, shard::Parameters& student,
                                     const TrainOptions& options, at::Device device, comm::Group& group) {
  record::NamedNumbers losses;
  if (sets.empty()) return losses;
  const eval::HeldHead scorer(student);
  for (const auto& set : sets)
    losses.emplace_back(set.source, held_out_loss(set, scorer, student, options, device, group));
  return losses;
}

std::int64_t held_out_bytes(const TrainOptions& options, const architecture::Config& student,
                            std::int64_t item_bytes, ops::Path path) {
  if (options.evaluate_every_steps <= 0) return 0;
  const auto length = options.packing.sequence_length;
  const auto windows = std::min(options.batch.sequences, (options.evaluate_tokens + length - 1) / length);
  return eval::held_out_bytes(student, item_bytes, windows * length, length, held_out_head_rows(options),
                              path);
}

}  // namespace retort::train
