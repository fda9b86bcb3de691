#include "retort/sparsify/plan.h"

#include <algorithm>
#include <vector>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/calibrate/enough_text.h"
#include "retort/calibrate/hessian.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/calibrate/text.h"
#include "retort/calibrate/top_k_reference.h"
#include "retort/sparsify/chosen_layers.h"
#include "retort/sparsify/damage.h"

namespace retort::sparsify {
namespace {

// What lives at once, at most, in matrices of columns x columns: the Hessians of fit and guard, the damped
// one and its factor while layers are worked on; beside them the sums, or what the factorisation is made
// from.
constexpr std::int64_t kLastingSquares = 4, kPassingSquares = 4;
constexpr std::int64_t kLayerMatrices =
    12;  // of a layer's shape: original, swept, errors, conjugate gradients

// Where the options do not say how much text there is.
constexpr std::int64_t kFittedTokensOfAnInput = 16;

// In forward passes that take as long.  The text goes through each half of a block twice.  Products of inputs
// with each other take about one pass more.  A test of a layer counts as one: it passes half of the blocks
// and the head, after a change of all weights of the layer.
constexpr std::int64_t kTextPasses = 3;

// Work on a layer of R x C, as products of R x C with C x C, and as C^3 operations, that take as long.
// Source: stages of benchmarks/smollm2/two_four.yaml, and the iterations that they counted.
struct LayerCost {
  double products = 0, cubes = 0;
};
constexpr double kPolishProducts = 60;
LayerCost layer_cost(const SparsifyOptions& options) {
  using enum compress::SparseMethod;
  LayerCost cost;
  if (options.method == alps) cost = {.products = 40 + kPolishProducts, .cubes = 100};
  if (options.method == sparse_gpt) cost = {.products = 10, .cubes = 10};
  if (options.polish) cost.products += kPolishProducts;
  return cost;
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

std::int64_t widest_fitted(const architecture::Config& config, const SparsifyOptions& options) {
  if (!options.polish && !compress::updates_weights(options.method)) return 0;
  const auto layout = architecture::make_layout(config);
  std::int64_t widest = 0;
  for (const auto* layer : chosen_tensors(layout, options)) widest = std::max(widest, layer->cols());
  return widest;
}

std::int64_t calibration_tokens_of(const architecture::Config& config, const SparsifyOptions& options) {
  if (options.calibration_tokens > 0) return options.calibration_tokens;
  return calibrate::text_tokens_for(widest_fitted(config, options), kFittedTokensOfAnInput, {});
}

SparsifyWork work_of(const architecture::Config& config, std::int64_t text_tokens,
                     const SparsifyOptions& options) {
  const auto layout = architecture::make_layout(config);
  const auto layers = chosen_tensors(layout, options);
  const calibrate::TextShares shares;
  SparsifyWork work{.text_tokens = text_tokens,
                    .passed_tokens = kTextPasses * text_tokens,
                    .layers = std::ssize(layers),
                    .fitted_inputs = widest_fitted(config, options)};
  const auto [products, cubes] = layer_cost(options);
  for (const auto* layer : layers) {
    const auto cols = static_cast<double>(layer->cols());
    work.flops += (products * 2 * static_cast<double>(layer->numel) + cubes * cols * cols) * cols;
  }
  if (options.share < 1) {  // all of it to measure each layer alone, and once more to make the best sparse
    work.passed_tokens *= 2;
    work.flops *= 2;
    const auto side = shares.choosing / (shares.fitted + shares.choosing + shares.judging);
    work.tested_tokens = static_cast<std::int64_t>(
        side * static_cast<double>(text_tokens * (work.layers + std::ssize(config.blocks))));
  }
  work.flops += architecture::flops_per_token(config, options.sequence_length) *
                static_cast<double>(work.passed_tokens + work.tested_tokens);
  return work;
}

std::string describe(const SparsifyWork& work) {
  std::string text = base::join("reads ", base::human_count(static_cast<double>(work.text_tokens)),
                                " tokens of calibration text");
  if (work.fitted_inputs > 0)
    text += base::join(", three quarters of them for layers of up to ", work.fitted_inputs, " inputs");
  text += base::join("; it passes the blocks in the time of ", work.passed_tokens / work.text_tokens,
                     " forward passes, and ", work.layers,
                     work.tested_tokens > 0 ? " layers are measured" : " layers become sparse");
  if (work.tested_tokens > 0)
    text += base::join(" one by one, on ", base::human_count(static_cast<double>(work.tested_tokens)),
                       " tokens in all");
  return text;
}

shard::MemoryPlan plan_sparsify(const architecture::Config& config, std::int64_t item_bytes,
                                const TextTokens& text, const SparsifyOptions& options, bool on_disk,
                                bool offloaded, ops::Path path) {
  const auto layout = architecture::make_layout(config);
  std::int64_t squares = 0, work = 0, restored = 0;
  for (const auto& unit : layout.units)
    if (unit.kind == architecture::Unit::Kind::block) restored = std::max(restored, unit.size);
  for (const auto* layer : chosen_tensors(layout, options)) {
    const std::int64_t cols = layer->cols(),
                       wide = cols <= calibrate::kDoubleColumns || item_bytes == 8 ? 8 : 4;
    squares = std::max(squares, kLastingSquares * cols * cols * wide);
    work = std::max({work, kPassingSquares * cols * cols * wide, kLayerMatrices * layer->numel * wide});
  }
  const auto hidden = config.hidden_size * item_bytes;
  const auto at_hand = (on_disk ? 2 * text.batch : text.fitted) + text.choosing + text.judging;
  const auto chosen_by =
      options.share < 1 ? calibrate::top_k_bytes(text.choosing, config.vocab_size, item_bytes) : 0;
  const auto together = calibrate::bytes_together(config, item_bytes, text.batch,
                                                  std::max(text.choosing, text.judging), offloaded);
  const auto passing = calibrate::activation_bytes(config, item_bytes, text.batch) + together;
  // Logits are made once a batch is through the blocks; of the model that a layer alone is sparse in, beside
  // the layer's Hessians.
  const auto scoring = calibrate::logit_bytes(config, std::min(kDamageRows, text.batch), path) +
                       2 * text.batch * hidden + together;
  const auto on_layer = std::max({work, passing, options.share < 1 ? scoring : 0});
  shard::MemoryPlan plan{
      {calibrate::planned_weights(kSparsifiedWeights, config, item_bytes,
                                  offloaded ? calibrate::OnDevice::block_and_head : calibrate::OnDevice::all),
       {on_disk ? "hidden states, most of them on disk" : "hidden states", at_hand * hidden},
       {"outputs or distributions of the model as it came", std::max(chosen_by, text.judging * hidden)}},
      "lower calibration_tokens, leave the widest layers out, or use a machine with more"};
  if (squares + on_layer < scoring) {
    plan.items.push_back({"logits", scoring});
  } else {
    plan.items.push_back({"Hessians and factor", squares});
    plan.items.push_back({"work on a layer, or activations", on_layer});
  }
  if (options.share < 1) plan.items.push_back({"the weights that a layer had", restored * item_bytes});
  return plan;
}

}  // namespace retort::sparsify
