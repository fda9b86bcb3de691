#pragma once
// A whole decoder built from the plain formulas of ops/reference/, for autograd: the oracle of hand-written
// gradients.

#include <ATen/ATen.h>

#include <vector>

#include "retort/architecture/config.h"
#include "retort/model/block.h"
#include "retort/model/head.h"
#include "retort/model/weights.h"
#include "retort/ops/reference/formulas.h"

namespace retort::test {

struct Shape {
  std::int64_t vocab = 61, hidden = 24, heads = 4, kv_heads = 2, head_dim = 10, width = 40, blocks = 3;
  bool tied = false;
};

inline architecture::Config config_of(const Shape& shape) {
  architecture::Config config;
  config.vocab_size = shape.vocab;
  config.hidden_size = shape.hidden;
  config.max_position_embeddings = 64;
  config.rms_norm_eps = 1e-5;
  config.tie_word_embeddings = shape.tied;
  config.bos_token_ids = {1};
  config.eos_token_ids = {2};
  config.blocks.assign(static_cast<std::size_t>(shape.blocks),
                       {architecture::Attention{shape.heads, shape.kv_heads, shape.head_dim},
                        architecture::DenseMlp{shape.width}});
  return config;
}

/// Weights large enough that every gradient matters; norms around 1.
inline model::Weights lively_weights(const architecture::Config& config, std::uint64_t seed,
                                     at::ScalarType type = at::kDouble) {
  at::manual_seed(seed);
  auto weights = model::random_weights(config, seed, at::kDouble, at::kCPU);
  for (std::size_t unit = 0; unit < weights.units.size(); ++unit)
    for (const auto& tensor : weights.layout.units[unit].tensors) {
      auto values = weights.tensor(unit, tensor);
      values.normal_(0, tensor.is_matrix() ? 0.3 : 0.2);
      if (!tensor.is_matrix()) values.add_(1);
    }
  return model::converted(weights, type);
}

inline at::Tensor reference_block(const model::BlockWeights& w, double eps, const at::Tensor& x_ND,
                                  const model::TokenLayout& layout) {
  namespace plain = ops::reference;
  auto mid_ND = x_ND;
  if (w.shape.attention) {
    const auto& a = *w.shape.attention;
    const auto tokens = x_ND.size(0), q = a.num_heads * a.head_dim, kv = a.num_kv_heads * a.head_dim;
    const auto& rotary = layout.turning(a)->rotary;
    const auto qkv = at::mm(plain::rms_norm(x_ND, w.attention_norm_D, eps), w.qkv_XD.t());
    const auto heads = [&](std::int64_t begin, std::int64_t width) {
      return qkv.narrow(1, begin, width).reshape({tokens, width / a.head_dim, a.head_dim});
    };
    const auto out = plain::attention(plain::rotary(heads(0, q), rotary.cos_NE2, rotary.sin_NE2, 1),
                                      plain::rotary(heads(q, kv), rotary.cos_NE2, rotary.sin_NE2, 1),
                                      heads(q + kv, kv), layout.starts);
    mid_ND = x_ND + at::mm(out.reshape({tokens, q}), w.output_DY.t());
  }
  if (!w.down_DI.defined()) return mid_ND;
  const auto channels = plain::swiglu(at::mm(plain::rms_norm(mid_ND, w.mlp_norm_D, eps), w.gate_up_2ID.t()));
  return mid_ND + at::mm(channels, w.down_DI.t());
}

struct ReferenceOutputs {
  std::vector<at::Tensor> hidden_ND;  ///< output of each block
  at::Tensor logits_NV;
};

/// Forward of the whole model; with leaf units that require a gradient, autograd follows.
inline ReferenceOutputs reference_model(const model::Weights& weights, const at::Tensor& ids_N,
                                        const std::vector<std::int64_t>& starts) {
  const auto& config = weights.config;
  const auto layout = model::make_token_layout(config, starts, at::kCPU);
  ReferenceOutputs outputs;
  auto hidden_ND = model::embedding_matrix(weights.layout, weights.units.front()).index_select(0, ids_N);
  for (std::size_t block = 0; block < config.blocks.size(); ++block) {
    const auto w =
        model::block_weights(config.blocks[block], weights.layout.units[block + 1], weights.units[block + 1]);
    hidden_ND = reference_block(w, config.rms_norm_eps, hidden_ND, layout);
    outputs.hidden_ND.push_back(hidden_ND);
  }
  const auto head = model::head_weights(weights.layout,
                                        weights.units[static_cast<std::size_t>(weights.layout.head_unit())]);
  outputs.logits_NV =
      at::mm(ops::reference::rms_norm(hidden_ND, head.norm_D, config.rms_norm_eps), head.matrix_VD.t());
  return outputs;
}

/// The same weights as leaves of autograd.
inline model::Weights as_leaves(const model::Weights& weights) {
  auto leaves = model::converted(weights, weights.units.front().scalar_type());
  for (auto& unit : leaves.units) unit.set_requires_grad(true);
  return leaves;
}

}  // namespace retort::test
