#pragma once
// Random calibration text, and a model's logits for it.

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "retort/base/random.h"
#include "retort/calibrate/text.h"
#include "retort/model/block.h"
#include "retort/model/forward.h"
#include "retort/model/head.h"
#include "retort/model/weights.h"
#include "support/models_for_tests.h"

namespace retort::test {

/// A sequence of random ids in which a second document begins in the middle.
inline data::Sequence random_sequence(std::int64_t vocab_size, std::size_t length, base::Random& random) {
  data::Sequence sequence;
  for (std::size_t i = 0; i < length; ++i)
    sequence.ids.push_back(
        static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(vocab_size))));
  sequence.targets.assign(sequence.ids.begin() + 1, sequence.ids.end());
  sequence.targets.push_back(data::kNoTarget);
  sequence.targets[length / 2 - 1] = data::kNoTarget;
  sequence.starts = {0, static_cast<std::int32_t>(length / 2)};
  return sequence;
}

inline std::vector<calibrate::SourceText> random_domains(std::int64_t vocab_size, std::size_t sequences = 3,
                                                         std::size_t length = 24) {
  base::Random random(5, 7);
  std::vector<calibrate::SourceText> domains = {{"first", {}}, {"second", {}}};
  for (auto& domain : domains)
    for (std::size_t i = 0; i < sequences; ++i)
      domain.sequences.push_back(random_sequence(vocab_size, length, random));
  return domains;
}

/// Logits of a batch, block by block without anything masked.
inline at::Tensor plain_logits(const model::Weights& weights, const calibrate::Batch& batch,
                               const std::vector<at::Tensor>& channel_masks = {},
                               const std::vector<bool>& keeps = {}) {
  auto hidden_ND = model::embedded(weights, batch.ids_N);
  for (std::size_t block = 0; block < weights.config.blocks.size(); ++block) {
    if (!keeps.empty() && !keeps[block]) continue;
    const model::BlockHooks hooks{.channel_mask_I =
                                      channel_masks.empty() ? at::Tensor() : channel_masks[block]};
    hidden_ND = model::block_forward(model::weights_of_block(weights, static_cast<std::int64_t>(block)),
                                     weights.config.rms_norm_eps, hidden_ND, batch.layout, nullptr, &hooks);
  }
  const auto& layout = weights.layout;
  return model::logits(
      model::head_weights(layout, weights.units[static_cast<std::size_t>(layout.head_unit())]),
      weights.config.rms_norm_eps, model::logit_rule(weights.config), hidden_ND);
}

}  // namespace retort::test
