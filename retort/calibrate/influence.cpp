#include "retort/calibrate/influence.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/calibrate/walk.h"
#include "retort/model/forward.h"

namespace retort::calibrate {
namespace {

double turned(const at::Tensor& x_ND, const at::Tensor& y_ND) {
  const auto cosine_N = at::cosine_similarity(x_ND.to(at::kDouble), y_ND.to(at::kDouble), /*dim=*/1);
  return 1 - cosine_N.mean().item<double>();
}

void add(Influence& sum, const Influence& part, double share) {
  sum.block += share * part.block;
  sum.attention += share * part.attention;
  sum.mlp += share * part.mlp;
}

}  // namespace

std::vector<Influence> influences(const model::Weights& weights, const std::vector<Batch>& batches) {
  std::vector<double> source_tokens;
  for (const auto& batch : batches) {
    source_tokens.resize(std::max(source_tokens.size(), batch.source + 1), 0);
    source_tokens[batch.source] += static_cast<double>(batch.layout.tokens());
  }
  const double eps = weights.config.rms_norm_eps;
  std::vector<Influence> influences(weights.config.blocks.size());
  // No Walk: a block's halves are wanted apart, and one batch after the other needs no memory for the rest.
  for (const auto& batch : batches) {
    const double share = static_cast<double>(batch.layout.tokens()) / source_tokens[batch.source] /
                         static_cast<double>(source_tokens.size());
    auto hidden_ND = model::embedded(weights, batch.ids_N);
    for (std::size_t block = 0; block < influences.size(); ++block) {
      const auto whole = model::weights_of_block(weights, static_cast<std::int64_t>(block));
      auto attention = whole, mlp = whole;
      attention.down_DI = at::Tensor();
      mlp.shape.attention.reset();
      const auto mid_ND = model::block_forward(attention, eps, hidden_ND, batch.layout);
      const auto out_ND = model::block_forward(mlp, eps, mid_ND, batch.layout);
      const Influence part{turned(hidden_ND, out_ND), turned(hidden_ND, mid_ND), turned(mid_ND, out_ND)};
      require_finite(out_ND, static_cast<std::int64_t>(block));
      add(influences[block], part, share);
      hidden_ND = out_ND;
    }
  }
  return influences;
}

}  // namespace retort::calibrate
