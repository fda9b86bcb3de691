#pragma once
// Tiny random models.

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/model/weights.h"
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

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

}  // namespace retort::test
