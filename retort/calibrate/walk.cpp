#include "retort/calibrate/walk.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/calibrate/state_bytes.h"

namespace retort::calibrate {

Walk::Walk(const model::Weights& weights, const std::vector<Batch>& batches, const base::Path& scratch)
    : weights_(weights), batches_(batches), hidden_(scratch) {
  for (std::size_t i = 0; i < batches.size(); ++i) hidden_.set(i, model::embedded(weights, batches[i].ids_N));
}

at::Tensor Walk::output(std::size_t batch, const Tap& tap) const {
  model::BlockHooks hooks;
  if (tap) hooks.tap = [&](model::Tap at, const at::Tensor& x_NC) { tap(batch, at, x_NC); };
  return model::forward_block(weights_, block_, hidden_.get(batch), batches_[batch].layout, hooks);
}

void Walk::look(std::size_t batch, const Tap& tap) const {
  output(batch, tap);
}

void Walk::advance(const Tap& tap) {
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const auto out_ND = output(i, tap);
    require_finite(out_ND, block_);
    hidden_.set(i, out_ND);
  }
  ++block_;
}

at::Tensor Walk::half_input_ND(std::size_t batch, model::Half half) const {
  return model::half_input(model::weights_of_block(weights_, block_), half, weights_.config.rms_norm_eps,
                           hidden_.get(batch));
}

at::Tensor Walk::half_inner_NC(std::size_t batch, model::Half half) const {
  return model::half_inner(model::weights_of_block(weights_, block_), half, weights_.config.rms_norm_eps,
                           hidden_.get(batch), batches_[batch].layout);
}

void Walk::finish_half(std::size_t batch, model::Half half, const at::Tensor& inner_NC) {
  if (!inner_NC.defined()) return;
  const auto out_ND = model::half_output(model::weights_of_block(weights_, block_), half,
                                         weights_.config.rms_norm_eps, inner_NC, hidden_.get(batch));
  require_finite(out_ND, block_);
  hidden_.set(batch, out_ND);
}

std::size_t batches_together(const model::Weights& weights) {
  return weights.offload ? kOffloadedBatches : 1;
}

void pass_blocks(const model::Weights& weights, const std::vector<Batch>& batches, std::int64_t first,
                 const std::function<at::Tensor(std::size_t batch)>& input,
                 const std::function<void(std::size_t batch, const at::Tensor& output_ND)>& use) {
  const auto together = batches_together(weights);
  for (std::size_t begin = 0; begin < batches.size(); begin += together) {
    const auto end = std::min(begin + together, batches.size());
    std::vector<at::Tensor> hidden_ND;
    for (auto batch = begin; batch < end; ++batch) hidden_ND.push_back(input(batch));
    for (auto block = first; block < std::ssize(weights.config.blocks); ++block)
      for (auto batch = begin; batch < end; ++batch) {
        auto& x_ND = hidden_ND[batch - begin];
        x_ND = model::forward_block(weights, block, x_ND, batches[batch].layout);
      }
    for (auto batch = begin; batch < end; ++batch) use(batch, hidden_ND[batch - begin]);
  }
}

void require_finite(const at::Tensor& hidden_ND, std::int64_t block) {
  base::require<base::ValidationError>(
      hidden_ND.isfinite().all().item<bool>(), block < 0 ? "embedding" : base::join("block ", block),
      ": its output on the calibration text is not finite (NaN or infinity); the model is damaged or its "
      "compute type too narrow, use float32.");
}

}  // namespace retort::calibrate
