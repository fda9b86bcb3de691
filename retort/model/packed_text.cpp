#include "retort/model/packed_text.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/model/tokens.h"

namespace retort::model {

PackedText packed_text(std::span<const TextSequence> sequences, at::Device device) {
  PackedText packed;
  std::vector<std::int32_t> ids, targets;
  for (const auto& sequence : sequences) {
    base::ensure(sequence.ids.size() == sequence.targets.size(), "a sequence has a target for each token");
    const auto begin = std::ssize(ids);
    packed.bounds.push_back(begin);
    packed.numbers.push_back(sequence.number);
    for (const auto start : sequence.starts) packed.starts.push_back(begin + start);
    ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
    targets.insert(targets.end(), sequence.targets.begin(), sequence.targets.end());
  }
  packed.bounds.push_back(std::ssize(ids));
  packed.starts.push_back(std::ssize(ids));
  packed.num_targets =
      std::count_if(targets.begin(), targets.end(), [](std::int32_t target) { return target >= 0; });
  packed.ids_N = index_tensor(ids, device);
  packed.targets_N = index_tensor(targets, device);
  return packed;
}

}  // namespace retort::model
