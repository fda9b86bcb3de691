#include "retort/model/block.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/ops/matrix_product.h"

namespace retort::model {
namespace {

using architecture::Role;

at::Tensor view_of(const architecture::Unit& unit, const at::Tensor& flat, Role role) {
  const auto* tensor = unit.find(role);
  return tensor ? flat.narrow(0, tensor->offset, tensor->numel).view(tensor->shape) : at::Tensor();
}

// Neighbouring matrices of one input as a single matrix: their rows follow each other without a gap.
at::Tensor fused_view(const architecture::Unit& unit, const at::Tensor& flat,
                      std::initializer_list<Role> roles) {
  const auto* first = unit.find(*roles.begin());
  if (!first) return {};
  std::int64_t rows = 0;
  for (const auto role : roles) rows += unit.find(role)->rows();
  return flat.narrow(0, first->offset, rows * first->cols()).view({rows, first->cols()});
}

struct Heads {
  at::Tensor q_NHE, k_NKE, v_NKE;
};

Heads split_heads(const at::Tensor& qkv_NX, const architecture::Attention& shape) {
  const auto tokens = qkv_NX.size(0), q = shape.num_heads * shape.head_dim,
             kv = shape.num_kv_heads * shape.head_dim;
  const auto part = [&](std::int64_t begin, std::int64_t width, std::int64_t heads) {
    return qkv_NX.narrow(1, begin, width).view({tokens, heads, shape.head_dim});
  };
  return {part(0, q, shape.num_heads), part(q, kv, shape.num_kv_heads), part(q + kv, kv, shape.num_kv_heads)};
}

at::Tensor project(const at::Tensor& x_NK, const at::Tensor& w_MK) {
  return ops::linear(x_NK, w_MK);
}

// Queries, keys and values with their rotation; heads of q and k lie next to each other in a row.
at::Tensor rotated_qkv(const BlockWeights& w, const at::Tensor& normal_ND, const TokenLayout& layout) {
  const auto& shape = *w.shape.attention;
  auto qkv_NX = project(normal_ND, w.qkv_XD);
  ops::apply_rotary(qkv_NX, shape.num_heads + shape.num_kv_heads, shape.head_dim,
                    layout.rotary.at(shape.head_dim), 1);
  return qkv_NX;
}

void call(const BlockHooks* hooks, Tap tap, const at::Tensor& x) {
  if (hooks && hooks->tap) hooks->tap(tap, x);
}

at::Tensor added(at::Tensor branch_ND, const at::Tensor& x_ND, const BlockHooks* hooks) {
  if (hooks && hooks->hidden_mask_D.defined()) branch_ND.mul_(hooks->hidden_mask_D);
  return branch_ND.add_(x_ND);
}

// The input of o_proj.  With `cache`, the tokens follow those in it.
at::Tensor attended(const BlockWeights& w, double eps, const at::Tensor& x_ND, const TokenLayout& layout,
                    BlockActivations* keep, const BlockHooks* hooks, ops::KeyValueCache* cache = nullptr) {
  auto norm = ops::rms_norm(x_ND, w.attention_norm_D, eps);
  call(hooks, Tap::qkv_input, norm.y_ND);
  auto qkv_NX = rotated_qkv(w, norm.y_ND, layout);
  if (cache) return ops::attention_cached(qkv_NX, *cache);
  const auto heads = split_heads(qkv_NX, *w.shape.attention);
  auto attention = ops::attention(heads.q_NHE, heads.k_NKE, heads.v_NKE, layout.starts);
  auto joined_NY = attention.out_NHE.flatten(1);
  if (hooks && hooks->head_mask_Y.defined()) joined_NY = joined_NY * hooks->head_mask_Y;
  call(hooks, Tap::output_input, joined_NY);
  if (keep) {
    keep->attention_norm = std::move(norm);
    keep->qkv_NX = std::move(qkv_NX);
    keep->attention = std::move(attention);
  }
  return joined_NY;
}

at::Tensor attention_branch(const BlockWeights& w, double eps, const at::Tensor& x_ND,
                            const TokenLayout& layout, BlockActivations* keep, const BlockHooks* hooks,
                            ops::KeyValueCache* cache = nullptr) {
  if (!w.shape.attention) return x_ND;
  return added(project(attended(w, eps, x_ND, layout, keep, hooks, cache), w.output_DY), x_ND, hooks);
}

// The input of down_proj.
at::Tensor activated(const BlockWeights& w, double eps, const at::Tensor& mid_ND, BlockActivations* keep,
                     const BlockHooks* hooks) {
  auto norm = ops::rms_norm(mid_ND, w.mlp_norm_D, eps);
  call(hooks, Tap::gate_up_input, norm.y_ND);
  auto gate_up_N2I = project(norm.y_ND, w.gate_up_2ID);
  auto channels_NI = ops::swiglu(gate_up_N2I);
  if (hooks && hooks->channel_mask_I.defined()) channels_NI.mul_(hooks->channel_mask_I);
  call(hooks, Tap::down_input, channels_NI);
  if (keep) {
    keep->mlp_norm = std::move(norm);
    keep->gate_up_N2I = std::move(gate_up_N2I);
  }
  return channels_NI;
}

at::Tensor mlp_branch(const BlockWeights& w, double eps, const at::Tensor& mid_ND, BlockActivations* keep,
                      const BlockHooks* hooks) {
  if (!w.down_DI.defined()) return mid_ND;
  return added(project(activated(w, eps, mid_ND, keep, hooks), w.down_DI), mid_ND, hooks);
}

at::Tensor mlp_backward(const BlockWeights& w, BlockActivations& kept, const at::Tensor& gout_ND,
                        const BlockWeights& gradients) {
  if (!w.down_DI.defined()) return gout_ND;
  const auto swiglu =
      ops::swiglu_backward_(ops::matrix_product(gout_ND, w.down_DI), std::move(kept.gate_up_N2I));
  ops::add_transposed_product(gradients.down_DI, gout_ND, swiglu.out_NI);
  ops::add_transposed_product(gradients.gate_up_2ID, swiglu.gate_up_N2I, kept.mlp_norm.y_ND);
  const auto gnormal_ND = ops::matrix_product(swiglu.gate_up_N2I, w.gate_up_2ID);
  auto gnorm_D = gradients.mlp_norm_D;
  return ops::rms_norm_backward(gnormal_ND, kept.mid_ND, w.mlp_norm_D, kept.mlp_norm.rstd_N, gout_ND,
                                gnorm_D);
}

at::Tensor attention_backward(const BlockWeights& w, const at::Tensor& x_ND, BlockActivations& kept,
                              const at::Tensor& gmid_ND, const TokenLayout& layout,
                              const BlockWeights& gradients) {
  if (!w.shape.attention) return gmid_ND;
  const auto& shape = *w.shape.attention;
  const auto gjoined_NHE = ops::matrix_product(gmid_ND, w.output_DY).view(kept.attention.out_NHE.sizes());
  ops::add_transposed_product(gradients.output_DY, gmid_ND, kept.attention.out_NHE.flatten(1));
  auto gqkv_NX = at::empty_like(kept.qkv_NX);
  const auto heads = split_heads(kept.qkv_NX, shape), gheads = split_heads(gqkv_NX, shape);
  ops::attention_backward(gjoined_NHE, heads.q_NHE, heads.k_NKE, heads.v_NKE, kept.attention, layout.starts,
                          gheads.q_NHE, gheads.k_NKE, gheads.v_NKE);
  ops::apply_rotary(gqkv_NX, shape.num_heads + shape.num_kv_heads, shape.head_dim,
                    layout.rotary.at(shape.head_dim), -1);
  ops::add_transposed_product(gradients.qkv_XD, gqkv_NX, kept.attention_norm.y_ND);
  const auto gnormal_ND = ops::matrix_product(gqkv_NX, w.qkv_XD);
  auto gnorm_D = gradients.attention_norm_D;
  return ops::rms_norm_backward(gnormal_ND, x_ND, w.attention_norm_D, kept.attention_norm.rstd_N, gmid_ND,
                                gnorm_D);
}

}  // namespace

BlockWeights block_weights(const architecture::Block& shape, const architecture::Unit& unit,
                           const at::Tensor& flat) {
  base::ensure(!std::holds_alternative<architecture::ExpertsMlp>(shape.mlp),
               "blocks with experts have no kernels yet");
  return {.shape = shape,
          .attention_norm_D = view_of(unit, flat, Role::attention_norm),
          .qkv_XD = fused_view(unit, flat, {Role::query, Role::key, Role::value}),
          .output_DY = view_of(unit, flat, Role::output),
          .mlp_norm_D = view_of(unit, flat, Role::mlp_norm),
          .gate_up_2ID = fused_view(unit, flat, {Role::gate, Role::up}),
          .down_DI = view_of(unit, flat, Role::down)};
}

at::Tensor block_forward(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                         const TokenLayout& layout, BlockActivations* keep, const BlockHooks* hooks) {
  auto mid_ND = attention_branch(weights, eps, x_ND, layout, keep, hooks);
  if (keep) keep->mid_ND = mid_ND;
  return mlp_branch(weights, eps, mid_ND, keep, hooks);
}

ops::KeyValueCache make_cache(const architecture::Block& shape, std::int64_t max_tokens,
                              const at::TensorOptions& options) {
  if (!shape.attention) return {};
  const std::vector<std::int64_t> size = {max_tokens, shape.attention->num_kv_heads,
                                          shape.attention->head_dim};
  return {at::empty(size, options), at::empty(size, options), 0};
}

at::Tensor block_decode(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                        const TokenLayout& layout, ops::KeyValueCache& cache) {
  const auto mid_ND = attention_branch(weights, eps, x_ND, layout, nullptr, nullptr, &cache);
  return mlp_branch(weights, eps, mid_ND, nullptr, nullptr);
}

at::Tensor half_input(const BlockWeights& w, Half half, double eps, const at::Tensor& x_ND) {
  return ops::rms_norm(x_ND, half == Half::attention ? w.attention_norm_D : w.mlp_norm_D, eps).y_ND;
}

at::Tensor half_inner(const BlockWeights& weights, Half half, double eps, const at::Tensor& x_ND,
                      const TokenLayout& layout) {
  if (half == Half::attention)
    return weights.shape.attention ? attended(weights, eps, x_ND, layout, nullptr, nullptr) : at::Tensor();
  return weights.down_DI.defined() ? activated(weights, eps, x_ND, nullptr, nullptr) : at::Tensor();
}

at::Tensor half_output(const BlockWeights& weights, Half half, const at::Tensor& inner_NC,
                       const at::Tensor& x_ND) {
  if (!inner_NC.defined()) return x_ND;
  return added(project(inner_NC, half == Half::attention ? weights.output_DY : weights.down_DI), x_ND,
               nullptr);
}

BlockActivations block_activations(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                                   const TokenLayout& layout) {
  BlockActivations kept;
  kept.mid_ND = attention_branch(weights, eps, x_ND, layout, &kept, nullptr);
  if (!weights.down_DI.defined()) return kept;
  kept.mlp_norm = ops::rms_norm(kept.mid_ND, weights.mlp_norm_D, eps);
  kept.gate_up_N2I = project(kept.mlp_norm.y_ND, weights.gate_up_2ID);
  return kept;
}

at::Tensor block_backward(const BlockWeights& weights, const at::Tensor& x_ND, BlockActivations kept,
                          const at::Tensor& gout_ND, const TokenLayout& layout,
                          const BlockWeights& gradients) {
  const auto gmid_ND = mlp_backward(weights, kept, gout_ND, gradients);
  kept.mlp_norm = {};
  kept.mid_ND = at::Tensor();
  return attention_backward(weights, x_ND, kept, gmid_ND, layout, gradients);
}

}  // namespace retort::model
