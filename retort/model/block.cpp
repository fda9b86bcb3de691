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

// Neighbouring tensors as a single one: their rows follow each other without a gap.
at::Tensor fused_view(const architecture::Unit& unit, const at::Tensor& flat,
                      std::initializer_list<Role> roles) {
  const auto* first = unit.find(*roles.begin());
  if (!first) return {};
  auto shape = first->shape;
  shape.front() = 0;
  std::int64_t numel = 0;
  for (const auto role : roles) {
    shape.front() += unit.find(role)->shape.front();
    numel += unit.find(role)->numel;
  }
  return flat.narrow(0, first->offset, numel).view(shape);
}

ops::Heads split_heads(const at::Tensor& qkv_NX, const architecture::Attention& shape) {
  return ops::split_heads(qkv_NX, shape.num_kv_heads, shape.head_dim);
}

ops::ScoreRule rule_of(const architecture::AttentionKind& kind) {
  return {.scale = kind.scale.value_or(0), .softcap = kind.softcap, .window = kind.window.value_or(0)};
}

at::Tensor project(const at::Tensor& x_NK, const at::Tensor& w_MK, const ops::PackedLinear& apart,
                   const at::Tensor& bias_M) {
  auto y_NM = apart.defined() ? ops::linear_apart(x_NK, apart) : ops::linear(x_NK, w_MK);
  return bias_M.defined() ? y_NM.add_(bias_M) : y_NM;
}

// What the first layers of a half read.
ops::RmsNorm normalised(const at::Tensor& x_ND, const at::Tensor& norm_D, double eps) {
  return norm_D.defined() ? ops::rms_norm(x_ND, norm_D, eps) : ops::RmsNorm{x_ND, {}};
}

// Rows as long as the norm: heads, or all heads of a token.
at::Tensor rows_for(const at::Tensor& part_NHE, const at::Tensor& norm_E) {
  return part_NHE.reshape({-1, norm_E.size(0)}).contiguous();
}

// Normalises queries or keys in their place.
void normalise_heads(at::Tensor part_NHE, const at::Tensor& norm_E, double eps, Normalised* keep) {
  if (!norm_E.defined()) return;
  const auto x_RE = rows_for(part_NHE, norm_E);
  const auto norm = ops::rms_norm(x_RE, norm_E, eps);
  part_NHE.copy_(norm.y_ND.view(part_NHE.sizes()));
  if (keep) *keep = {x_RE, norm.rstd_N};
}

// The gradient of normalise_heads, in the place of the gradient of its result.
void normalise_heads_backward(at::Tensor g_NHE, const at::Tensor& norm_E, const Normalised& kept,
                              at::Tensor gnorm_E) {
  if (!norm_E.defined()) return;
  const auto gx_RE =
      ops::rms_norm_backward(rows_for(g_NHE, norm_E), kept.x_RC, norm_E, kept.rstd_R, {}, gnorm_E);
  g_NHE.copy_(gx_RE.view(g_NHE.sizes()));
}

// Turns queries and keys, or with sign -1 the gradient back; their heads lie next to each other in a row.
void turn(at::Tensor qkv_NX, const architecture::Attention& shape, const TokenLayout& layout, double sign) {
  const auto* turning = layout.turning(shape);
  if (!turning) return;
  ops::apply_rotary(qkv_NX, shape.num_heads + shape.num_kv_heads, shape.head_dim, turning->rotary, sign);
  if (turning->query_factor_N.defined())
    qkv_NX.narrow(1, 0, shape.num_heads * shape.head_dim).mul_(turning->query_factor_N.unsqueeze(1));
}

// Queries, keys and values as attention takes them.
at::Tensor turned_qkv(const BlockWeights& w, double eps, const at::Tensor& normal_ND,
                      const TokenLayout& layout, BlockActivations* keep) {
  const auto& shape = *w.shape.attention;
  auto qkv_NX = project(normal_ND, w.qkv_XD, w.apart.qkv, w.qkv_bias_X);
  const auto heads = split_heads(qkv_NX, shape);
  normalise_heads(heads.q_NHE, w.query_norm_E, eps, keep ? &keep->query_norm : nullptr);
  normalise_heads(heads.k_NKE, w.key_norm_E, eps, keep ? &keep->key_norm : nullptr);
  turn(qkv_NX, shape, layout, 1);
  return qkv_NX;
}

void call(const BlockHooks* hooks, Tap tap, const at::Tensor& x) {
  if (hooks && hooks->tap) hooks->tap(tap, x);
}

// What a half's last layer gives, added to the hidden state.
at::Tensor added(at::Tensor branch_ND, const at::Tensor& x_ND, const architecture::Block& shape,
                 const at::Tensor& post_norm_D, double eps, Normalised* keep, const BlockHooks* hooks) {
  if (hooks && hooks->hidden_mask_D.defined()) branch_ND.mul_(hooks->hidden_mask_D);
  if (post_norm_D.defined()) {
    auto norm = ops::rms_norm(branch_ND, post_norm_D, eps);
    if (keep) *keep = {branch_ND, norm.rstd_N};
    branch_ND = std::move(norm.y_ND);
  }
  if (shape.residual_factor != 1) branch_ND.mul_(shape.residual_factor);
  return branch_ND.add_(x_ND);
}

// The gradient of what a half's last layer gives, from that of the half's output.
at::Tensor branch_gradient(const at::Tensor& gout_ND, const architecture::Block& shape,
                           const at::Tensor& post_norm_D, const Normalised& kept, at::Tensor gnorm_D) {
  const auto g_ND = shape.residual_factor != 1 ? gout_ND * shape.residual_factor : gout_ND;
  if (!post_norm_D.defined()) return g_ND;
  return ops::rms_norm_backward(g_ND, kept.x_RC, post_norm_D, kept.rstd_R, {}, gnorm_D);
}

// In pieces of rows, because a sum in another type makes a copy first.
void add_bias_gradient(at::Tensor gbias_M, const at::Tensor& g_NM) {
  constexpr std::int64_t kRows = 64;
  if (!gbias_M.defined()) return;
  for (const auto& piece_RM : g_NM.split(kRows))
    gbias_M.add_(piece_RM.sum(at::IntArrayRef{0}, /*keepdim=*/false, gbias_M.scalar_type()));
}

// The gradient of a half's input, from that of what its first layers read.
at::Tensor input_gradient(at::Tensor gnormal_ND, const at::Tensor& x_ND, const at::Tensor& norm_D,
                          const ops::RmsNorm& kept, const at::Tensor& gout_ND, at::Tensor gnorm_D) {
  if (!norm_D.defined()) return gnormal_ND.add_(gout_ND);
  return ops::rms_norm_backward(gnormal_ND, x_ND, norm_D, kept.rstd_N, gout_ND, gnorm_D);
}

// The input of o_proj.  With `attend`, keys and values of earlier tokens are somewhere else.
at::Tensor attended(const BlockWeights& w, double eps, const at::Tensor& x_ND, const TokenLayout& layout,
                    BlockActivations* keep, const BlockHooks* hooks, const Attend* attend = nullptr) {
  const auto& shape = *w.shape.attention;
  auto norm = normalised(x_ND, w.attention_norm_D, eps);
  call(hooks, Tap::qkv_input, norm.y_ND);
  auto qkv_NX = turned_qkv(w, eps, norm.y_ND, layout, keep);
  if (attend) return (*attend)(qkv_NX, rule_of(shape.kind));
  const auto heads = split_heads(qkv_NX, shape);
  auto attention = ops::attention(heads.q_NHE, heads.k_NKE, heads.v_NKE, layout.starts, rule_of(shape.kind));
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

at::Tensor attention_output(const BlockWeights& w, double eps, const at::Tensor& joined_NY,
                            const at::Tensor& x_ND, BlockActivations* keep, const BlockHooks* hooks) {
  return added(project(joined_NY, w.output_DY, w.apart.output, w.output_bias_D), x_ND, w.shape,
               w.attention_post_norm_D, eps, keep ? &keep->attention_post_norm : nullptr, hooks);
}

at::Tensor attention_branch(const BlockWeights& w, double eps, const at::Tensor& x_ND,
                            const TokenLayout& layout, BlockActivations* keep, const BlockHooks* hooks,
                            const Attend* attend = nullptr) {
  if (!w.shape.attention) return x_ND;
  return attention_output(w, eps, attended(w, eps, x_ND, layout, keep, hooks, attend), x_ND, keep, hooks);
}

bool is_silu(const BlockWeights& w) {
  return std::get<architecture::DenseMlp>(w.shape.mlp).activation == architecture::Activation::silu;
}

// The input of down_proj.
at::Tensor activated(const BlockWeights& w, double eps, const at::Tensor& mid_ND, BlockActivations* keep,
                     const BlockHooks* hooks) {
  auto norm = normalised(mid_ND, w.mlp_norm_D, eps);
  call(hooks, Tap::gate_up_input, norm.y_ND);
  auto gate_up_N2I = project(norm.y_ND, w.gate_up_2ID, w.apart.gate_up, w.gate_up_bias_2I);
  auto channels_NI = is_silu(w) ? ops::swiglu(gate_up_N2I) : ops::geglu(gate_up_N2I);
  if (hooks && hooks->channel_mask_I.defined()) channels_NI.mul_(hooks->channel_mask_I);
  call(hooks, Tap::down_input, channels_NI);
  if (keep) {
    keep->mlp_norm = std::move(norm);
    keep->gate_up_N2I = std::move(gate_up_N2I);
  }
  return channels_NI;
}

at::Tensor mlp_output(const BlockWeights& w, double eps, const at::Tensor& channels_NI,
                      const at::Tensor& mid_ND, BlockActivations* keep, const BlockHooks* hooks) {
  return added(project(channels_NI, w.down_DI, w.apart.down, w.down_bias_D), mid_ND, w.shape,
               w.mlp_post_norm_D, eps, keep ? &keep->mlp_post_norm : nullptr, hooks);
}

at::Tensor mlp_branch(const BlockWeights& w, double eps, const at::Tensor& mid_ND, BlockActivations* keep,
                      const BlockHooks* hooks) {
  if (!w.down_DI.defined() && !w.apart.down.defined()) return mid_ND;
  return mlp_output(w, eps, activated(w, eps, mid_ND, keep, hooks), mid_ND, keep, hooks);
}

at::Tensor mlp_backward(const BlockWeights& w, BlockActivations& kept, const at::Tensor& gout_ND,
                        const BlockWeights& gradients) {
  if (!w.down_DI.defined()) return gout_ND;
  const auto gbranch_ND =
      branch_gradient(gout_ND, w.shape, w.mlp_post_norm_D, kept.mlp_post_norm, gradients.mlp_post_norm_D);
  kept.mlp_post_norm = {};
  const auto gchannels_NI = ops::matrix_product(gbranch_ND, w.down_DI);
  const auto glu = is_silu(w) ? ops::swiglu_backward_(gchannels_NI, std::move(kept.gate_up_N2I))
                              : ops::geglu_backward_(gchannels_NI, std::move(kept.gate_up_N2I));
  ops::add_transposed_product(gradients.down_DI, gbranch_ND, glu.out_NI);
  add_bias_gradient(gradients.down_bias_D, gbranch_ND);
  ops::add_transposed_product(gradients.gate_up_2ID, glu.gate_up_N2I, kept.mlp_norm.y_ND);
  add_bias_gradient(gradients.gate_up_bias_2I, glu.gate_up_N2I);
  return input_gradient(ops::matrix_product(glu.gate_up_N2I, w.gate_up_2ID), kept.mid_ND, w.mlp_norm_D,
                        kept.mlp_norm, gout_ND, gradients.mlp_norm_D);
}

// The gradient of queries, keys and values as the product of their matrix gave them.
at::Tensor qkv_gradient(const BlockWeights& w, const BlockActivations& kept, const at::Tensor& gjoined_NY,
                        const TokenLayout& layout, const BlockWeights& gradients) {
  const auto& shape = *w.shape.attention;
  auto gqkv_NX = at::empty_like(kept.qkv_NX);
  const auto heads = split_heads(kept.qkv_NX, shape), gheads = split_heads(gqkv_NX, shape);
  ops::attention_backward(gjoined_NY.view(kept.attention.out_NHE.sizes()), heads.q_NHE, heads.k_NKE,
                          heads.v_NKE, kept.attention, layout.starts, gheads.q_NHE, gheads.k_NKE,
                          gheads.v_NKE, rule_of(shape.kind));
  turn(gqkv_NX, shape, layout, -1);
  normalise_heads_backward(gheads.q_NHE, w.query_norm_E, kept.query_norm, gradients.query_norm_E);
  normalise_heads_backward(gheads.k_NKE, w.key_norm_E, kept.key_norm, gradients.key_norm_E);
  return gqkv_NX;
}

at::Tensor attention_backward(const BlockWeights& w, const at::Tensor& x_ND, BlockActivations& kept,
                              const at::Tensor& gmid_ND, const TokenLayout& layout,
                              const BlockWeights& gradients) {
  if (!w.shape.attention) return gmid_ND;
  const auto gbranch_ND = branch_gradient(gmid_ND, w.shape, w.attention_post_norm_D, kept.attention_post_norm,
                                          gradients.attention_post_norm_D);
  kept.attention_post_norm = {};
  ops::add_transposed_product(gradients.output_DY, gbranch_ND, kept.attention.out_NHE.flatten(1));
  add_bias_gradient(gradients.output_bias_D, gbranch_ND);
  const auto gqkv_NX = qkv_gradient(w, kept, ops::matrix_product(gbranch_ND, w.output_DY), layout, gradients);
  ops::add_transposed_product(gradients.qkv_XD, gqkv_NX, kept.attention_norm.y_ND);
  add_bias_gradient(gradients.qkv_bias_X, gqkv_NX);
  return input_gradient(ops::matrix_product(gqkv_NX, w.qkv_XD), x_ND, w.attention_norm_D, kept.attention_norm,
                        gmid_ND, gradients.attention_norm_D);
}

}  // namespace

BlockWeights block_weights(const architecture::Block& shape, const architecture::Unit& unit,
                           const at::Tensor& flat) {
  base::ensure(!std::holds_alternative<architecture::ExpertsMlp>(shape.mlp),
               "blocks with experts have no kernels yet");
  return {.shape = shape,
          .attention_norm_D = view_of(unit, flat, Role::attention_norm),
          .qkv_XD = fused_view(unit, flat, {Role::query, Role::key, Role::value}),
          .qkv_bias_X = fused_view(unit, flat, {Role::query_bias, Role::key_bias, Role::value_bias}),
          .query_norm_E = view_of(unit, flat, Role::query_norm),
          .key_norm_E = view_of(unit, flat, Role::key_norm),
          .output_DY = view_of(unit, flat, Role::output),
          .output_bias_D = view_of(unit, flat, Role::output_bias),
          .attention_post_norm_D = view_of(unit, flat, Role::attention_post_norm),
          .mlp_norm_D = view_of(unit, flat, Role::mlp_norm),
          .gate_up_2ID = fused_view(unit, flat, {Role::gate, Role::up}),
          .gate_up_bias_2I = fused_view(unit, flat, {Role::gate_bias, Role::up_bias}),
          .down_DI = view_of(unit, flat, Role::down),
          .down_bias_D = view_of(unit, flat, Role::down_bias),
          .mlp_post_norm_D = view_of(unit, flat, Role::mlp_post_norm)};
}

at::Tensor block_forward(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                         const TokenLayout& layout, BlockActivations* keep, const BlockHooks* hooks) {
  auto mid_ND = attention_branch(weights, eps, x_ND, layout, keep, hooks);
  if (keep) keep->mid_ND = mid_ND;
  return mlp_branch(weights, eps, mid_ND, keep, hooks);
}

void pack_for_texts(BlockWeights& weights) {
  const auto pack = [](at::Tensor& matrix_MK, ops::PackedLinear& packed) {
    if (matrix_MK.defined()) packed = ops::PackedLinear(matrix_MK);
    matrix_MK = at::Tensor();
  };
  pack(weights.qkv_XD, weights.apart.qkv);
  pack(weights.output_DY, weights.apart.output);
  pack(weights.gate_up_2ID, weights.apart.gate_up);
  pack(weights.down_DI, weights.apart.down);
  for (auto* vector :
       {&weights.attention_norm_D, &weights.qkv_bias_X, &weights.query_norm_E, &weights.key_norm_E,
        &weights.output_bias_D, &weights.attention_post_norm_D, &weights.mlp_norm_D, &weights.gate_up_bias_2I,
        &weights.down_bias_D, &weights.mlp_post_norm_D})
    if (vector->defined()) *vector = vector->clone();
}

at::Tensor block_of_texts(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                          const TokenLayout& layout, const Attend& attend) {
  const auto mid_ND = attention_branch(weights, eps, x_ND, layout, nullptr, nullptr, &attend);
  return mlp_branch(weights, eps, mid_ND, nullptr, nullptr);
}

at::Tensor half_input(const BlockWeights& w, Half half, double eps, const at::Tensor& x_ND) {
  return normalised(x_ND, half == Half::attention ? w.attention_norm_D : w.mlp_norm_D, eps).y_ND;
}

at::Tensor half_inner(const BlockWeights& weights, Half half, double eps, const at::Tensor& x_ND,
                      const TokenLayout& layout) {
  if (half == Half::attention)
    return weights.shape.attention ? attended(weights, eps, x_ND, layout, nullptr, nullptr) : at::Tensor();
  return weights.down_DI.defined() ? activated(weights, eps, x_ND, nullptr, nullptr) : at::Tensor();
}

at::Tensor half_output(const BlockWeights& weights, Half half, double eps, const at::Tensor& inner_NC,
                       const at::Tensor& x_ND) {
  if (!inner_NC.defined()) return x_ND;
  return half == Half::attention ? attention_output(weights, eps, inner_NC, x_ND, nullptr, nullptr)
                                 : mlp_output(weights, eps, inner_NC, x_ND, nullptr, nullptr);
}

BlockActivations block_activations(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                                   const TokenLayout& layout) {
  BlockActivations kept;
  kept.mid_ND = attention_branch(weights, eps, x_ND, layout, &kept, nullptr);
  if (!weights.down_DI.defined()) return kept;
  if (weights.mlp_post_norm_D.defined()) {
    mlp_branch(weights, eps, kept.mid_ND, &kept, nullptr);
    return kept;
  }
  kept.mlp_norm = normalised(kept.mid_ND, weights.mlp_norm_D, eps);
  kept.gate_up_N2I =
      project(kept.mlp_norm.y_ND, weights.gate_up_2ID, weights.apart.gate_up, weights.gate_up_bias_2I);
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
