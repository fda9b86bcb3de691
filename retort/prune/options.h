#pragma once
// What a recipe may say about pruning and sparsifying.

#include <cstdint>
#include <string>
#include <vector>

namespace retort::prune {

/// Exactly one of the two is set.
struct Target {
  double parameters_fraction = 0;  ///< of the model's unique saved parameters, in (0, 1)
  std::int64_t parameters = 0;     ///< absolute
};

/// f = perplexity * delta log perplexity + kl * KL(teacher || candidate), temperature 1, mean over domains.
struct ObjectiveWeights {
  double perplexity = 1.0;
  double kl = 1.0;
};

struct PruneOptions {
  Target target;
  bool blocks = true;    ///< candidates: drop one block
  bool channels = true;  ///< candidates: narrow every MLP by width_multiple channels
  std::int64_t width_multiple = 32;
  ObjectiveWeights objective;
  std::int64_t calibration_tokens = 16384;  ///< over all domains
  std::int64_t sequence_length = 512;
  std::uint64_t seed = 0;
};

struct SparsifyOptions {
  std::string pattern = "2:4";
  std::vector<std::string>
      layers;  ///< module names such as gate_proj; empty: every linear layer of the blocks
  std::vector<std::int64_t> blocks;  ///< empty: every block
  double dampening_fraction = 0.01;  ///< of the mean diagonal of the Hessian
  std::int64_t block_size = 128;     ///< columns of one sweep block
  std::int64_t calibration_tokens = 32768;
  std::int64_t sequence_length = 512;
  std::uint64_t seed = 0;
};

}  // namespace retort::prune
