#pragma once
// What a recipe may say about sparsifying.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/calibrate/options.h"
#include "retort/compress/options.h"

namespace retort::sparsify {

struct SparsifyOptions {
  std::string pattern = "2:4";
  compress::SparseMethod method = compress::SparseMethod::alps;
  compress::MaskChoice mask = compress::MaskChoice::saliency;  ///< of sparse_gpt alone
  bool permute = true;  ///< MLP channels and features of value heads, so that the pattern loses less; exact
  bool polish = true;   ///< least squares for the chosen masks, kept per layer where held-out inputs agree
  double share = 1;     ///< part of the chosen weights that becomes sparse, the least damage first
  calibrate::ObjectiveWeights objective;  ///< weights of the damage
  std::vector<std::string>
      layers;  ///< module names such as gate_proj; empty: every linear layer of the blocks
  std::vector<std::int64_t> blocks;     ///< empty: every block
  double dampening_fraction = 0.01;     ///< share of the mean diagonal of the Hessian
  std::int64_t block_size = 128;        ///< columns of one sweep block, of sparse_gpt alone
  std::int64_t calibration_tokens = 0;  ///< sum over all sources; 0: as the model needs, see plan.h
  std::int64_t sequence_length = 512;
  std::uint64_t seed = 0;
};

}  // namespace retort::sparsify
