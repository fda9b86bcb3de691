#include "retort/train/batches.h"

#include <algorithm>

namespace retort::train {

std::int64_t prepared_sequences(const TrainOptions& options) {
  constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
  const auto bytes = data::kSequenceBytesPerToken * options.packing.sequence_length;
  const auto two_steps = 2 * options.batch.sequences * options.batch.accumulate;
  return std::clamp<std::int64_t>(kMostBytes / bytes, 1, two_steps);
}

std::vector<shard::MicroBatch> make_micro_batches(std::span<const data::Sequence> sequences,
                                                  std::int64_t per_batch, at::Device device) {
  std::vector<shard::MicroBatch> batches;
  for (std::size_t begin = 0; begin < sequences.size(); begin += static_cast<std::size_t>(per_batch))
    batches.push_back(model::packed_text(
        sequences.subspan(begin, std::min(static_cast<std::size_t>(per_batch), sequences.size() - begin)),
        device));
  return batches;
}

}  // namespace retort::train
