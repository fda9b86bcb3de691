#include "retort/sparsify/plan.h"

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/calibrate/hessian.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/calibrate/text.h"
#include "retort/sparsify/damage.h"

namespace retort::sparsify {
namespace {

// What lives at once, at most, in matrices of columns x columns: the Hessians of fit and guard, the damped
// one and its factor while layers are worked on; beside them the sums, or what the factorisation is made
// from.
constexpr std::int64_t kLastingSquares = 4, kPassingSquares = 4;
constexpr std::int64_t kLayerMatrices =
    12;  // of a layer's shape: original, swept, errors, conjugate gradients

bool is_chosen(const architecture::Tensor& tensor, const SparsifyOptions& options) {
  if (!tensor.is_matrix()) return false;
  const auto is_named = [&](const std::string& layer) {
    return tensor.name.ends_with("." + layer + ".weight");
  };
  return options.layers.empty() || std::any_of(options.layers.begin(), options.layers.end(), is_named);
}

}  // namespace

TextTokens most_tokens(const SparsifyOptions& options, std::int64_t tokens, std::int64_t ranks) {
  const auto batch = std::min(tokens, std::max(calibrate::kCalibrationBatchTokens, options.sequence_length));
  // Ranks share whole batches.
  const auto of_rank = [&](std::int64_t all) {
    const auto batches = (all + batch - 1) / batch;
    return std::min(all, (batches + ranks - 1) / ranks * batch);
  };
  const auto side = of_rank(tokens / 8 + tokens / 4);
  return {.fitted = of_rank(tokens), .choosing = side, .judging = side, .batch = batch};
}

shard::MemoryPlan plan_sparsify(const architecture::Config& config, std::int64_t item_bytes,
                                const TextTokens& text, const SparsifyOptions& options, bool on_disk) {
  std::int64_t squares = 0, work = 0;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors) {
      if (unit.block_index < 0 || !is_chosen(tensor, options)) continue;
      const std::int64_t cols = tensor.cols(),
                         wide = cols <= calibrate::kDoubleColumns || item_bytes == 8 ? 8 : 4;
      squares = std::max(squares, kLastingSquares * cols * cols * wide);
      work = std::max({work, kPassingSquares * cols * cols * wide, kLayerMatrices * tensor.numel * wide});
    }
  const auto hidden = config.hidden_size * item_bytes;
  const auto at_hand = (on_disk ? 2 * text.batch : text.fitted) + text.choosing + text.judging;
  const auto referred = std::max(options.share < 1 ? text.choosing : 0, text.judging);
  return {{{std::string(kSparsifiedWeights), architecture::num_parameters(config) * item_bytes},
           {on_disk ? "hidden states, most of them on disk" : "hidden states", at_hand * hidden},
           {"outputs of the model as it came", referred * hidden},
           {"Hessians and factor", squares},
           {"work on a layer", work},
           {"activations of a batch", calibrate::activation_bytes(config, item_bytes, text.batch)},
           {"logits", calibrate::logit_bytes(config, std::min(kDamageRows, text.batch))}},
          "lower calibration_tokens, leave the widest layers out, or use a machine with more"};
}

}  // namespace retort::sparsify
