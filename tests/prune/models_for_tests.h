#pragma once
// Tiny random models and random text.

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/random.h"
#include "retort/model/block.h"
#include "retort/model/head.h"
#include "retort/model/weights.h"
#include "retort/prune/calibration.h"
#include "support/message_of.h"

namespace retort::test {

/// Weights so large that every block and channel matters.
inline architecture::Config tiny_config(std::size_t blocks = 3, std::int64_t width = 16, bool tied = true) {
  architecture::Config config;
  config.vocab_size = 40;
  config.hidden_size = 16;
  config.max_position_embeddings = 64;
  config.initializer_range = 0.4;
  config.tie_word_embeddings = tied;
  config.blocks.assign(blocks,
                       {.attention = architecture::Attention{4, 2, 4}, .mlp = architecture::DenseMlp{width}});
  return config;
}

inline model::Weights tiny_model(const architecture::Config& config, std::uint64_t seed = 1,
                                 at::ScalarType dtype = at::kDouble) {
  auto weights = model::random_weights(config, seed, dtype, at::kCPU);
  weights.file_dtype = io::Dtype::f32;
  return weights;
}

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

inline std::vector<prune::CalibrationDomain> random_domains(std::int64_t vocab_size,
                                                            std::size_t sequences = 3,
                                                            std::size_t length = 24) {
  base::Random random(5, 7);
  std::vector<prune::CalibrationDomain> domains = {{"first", {}}, {"second", {}}};
  for (auto& domain : domains)
    for (std::size_t i = 0; i < sequences; ++i)
      domain.sequences.push_back(random_sequence(vocab_size, length, random));
  return domains;
}

/// Logits of a batch, block by block without anything masked.
inline at::Tensor plain_logits(const model::Weights& weights, const prune::CalibrationBatch& batch,
                               const std::vector<at::Tensor>& channel_masks = {},
                               const std::vector<bool>& keeps = {}) {
  auto hidden_ND = prune::embedded(weights, batch);
  for (std::size_t block = 0; block < weights.config.blocks.size(); ++block) {
    if (!keeps.empty() && !keeps[block]) continue;
    const model::BlockHooks hooks{.channel_mask_I =
                                      channel_masks.empty() ? at::Tensor() : channel_masks[block]};
    hidden_ND = model::block_forward(prune::weights_of_block(weights, static_cast<std::int64_t>(block)),
                                     weights.config.rms_norm_eps, hidden_ND, batch.layout, nullptr, &hooks);
  }
  const auto& layout = weights.layout;
  return model::logits(
      model::head_weights(layout, weights.units[static_cast<std::size_t>(layout.head_unit())]),
      weights.config.rms_norm_eps, hidden_ND);
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

}  // namespace retort::test
