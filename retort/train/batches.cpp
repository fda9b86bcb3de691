#include "retort/train/batches.h"

#include <algorithm>

namespace retort::train {

std::int64_t prepared_sequences(const TrainOptions& options) {
  constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
  const auto bytes = data::kSequenceBytesPerToken * options.packing.sequence_length;
  const auto two_steps = 2 * options.batch.sequences * options.batch.accumulate;
  return std::clamp<std::int64_t>(kMostBytes / bytes, 1, two_steps);
}

shard::MicroBatch make_micro_batch(std::span<const data::Sequence> sequences, at::Device device) {
  shard::MicroBatch batch;
  std::vector<std::int32_t> ids, targets;
  for (const auto& sequence : sequences) {
    const auto begin = static_cast<std::int64_t>(ids.size());
    batch.bounds.push_back(begin);
    for (const auto start : sequence.starts) batch.starts.push_back(begin + start);
    ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
    targets.insert(targets.end(), sequence.targets.begin(), sequence.targets.end());
  }
  batch.bounds.push_back(static_cast<std::int64_t>(ids.size()));
  batch.starts.push_back(static_cast<std::int64_t>(ids.size()));
  batch.num_targets =
      std::count_if(targets.begin(), targets.end(), [](std::int32_t target) { return target >= 0; });
  batch.ids_N = model::index_tensor(ids, device);
  batch.targets_N = model::index_tensor(targets, device);
  return batch;
}

std::vector<shard::MicroBatch> make_micro_batches(std::span<const data::Sequence> sequences,
                                                  std::int64_t per_batch, at::Device device) {
  std::vector<shard::MicroBatch> batches;
  for (std::size_t begin = 0; begin < sequences.size(); begin += static_cast<std::size_t>(per_batch))
    batches.push_back(make_micro_batch(
        sequences.subspan(begin, std::min(static_cast<std::size_t>(per_batch), sequences.size() - begin)),
        device));
  return batches;
}

}  // namespace retort::train
