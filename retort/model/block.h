#pragma once
// One decoder block: a pure function of its weights and its input, and that function's gradient.
// The block knows no cluster and keeps no graph: backward is written out, so what it holds is known to the
// byte.
//
//   x -> norm -> q k v (-> their norms) -> RoPE -> attention -> o (-> norm) -> + x = mid
//   mid -> norm -> gate up -> SwiGLU -> down (-> norm) -> + mid
//
// What a block has of it, its shape says; biases, windows and factors too.
//
// Shape legend: N tokens, D hidden, X = (H + 2K) E fused query, key and value, Y = H E, I width of the MLP.

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/architecture/layout.h"
#include "retort/model/tokens.h"
#include "retort/ops/attention.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/packed_linear.h"

namespace retort::model {

/// Views into one block's flat buffer (weights, or gradients of the same layout); parts that the block lacks
/// are undefined.
struct BlockWeights {
  architecture::Block shape;
  at::Tensor attention_norm_D = {}, qkv_XD = {}, qkv_bias_X = {}, query_norm_E = {}, key_norm_E = {},
             output_DY = {}, output_bias_D = {}, attention_post_norm_D = {};
  at::Tensor mlp_norm_D = {}, gate_up_2ID = {}, gate_up_bias_2I = {}, down_DI = {}, down_bias_D = {},
             mlp_post_norm_D = {};
  /// The matrices as block_of_texts() multiplies them; undefined until pack_for_texts().
  struct {
    ops::PackedLinear qkv = {}, output = {}, gate_up = {}, down = {};
  } apart = {};
};
BlockWeights block_weights(const architecture::Block& shape, const architecture::Unit& unit,
                           const at::Tensor& flat);

/// The inputs of the linear layers, for statistics.
enum class Tap { qkv_input, output_input, gate_up_input, down_input };

/// What a caller may add to a forward pass; empty members cost nothing.
struct BlockHooks {
  std::function<void(Tap, const at::Tensor& x_NC)> tap = {};
  /// Multiply the channels of the MLP, the inputs of o_proj, and what o_proj and down_proj give to the hidden
  /// state: 0 removes a channel, head or feature without rebuilding anything.
  at::Tensor channel_mask_I = {}, head_mask_Y = {}, hidden_mask_D = {};
};

/// The input of a norm, and 1 / rms of its rows.
struct Normalised {
  at::Tensor x_RC, rstd_R;
};

/// What backward needs besides the block's input.
struct BlockActivations {
  ops::RmsNorm attention_norm, mlp_norm;  ///< without a norm: what it would read
  Normalised query_norm, key_norm, attention_post_norm, mlp_post_norm;
  at::Tensor qkv_NX;  ///< after RoPE
  ops::Attention attention;
  at::Tensor mid_ND, gate_up_N2I;
};

/// Output of the block.  With `keep`, also what block_backward needs.
at::Tensor block_forward(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                         const TokenLayout& layout, BlockActivations* keep = nullptr,
                         const BlockHooks* hooks = nullptr);

using architecture::Half;
/// The input of the half's first layers, q k v or gate up, [N, D]; `x_ND` itself without a norm before them.
at::Tensor half_input(const BlockWeights& weights, Half half, double eps, const at::Tensor& x_ND);
/// The input of the half's last layer, [N, C]; undefined where the block lacks the half.
at::Tensor half_inner(const BlockWeights& weights, Half half, double eps, const at::Tensor& x_ND,
                      const TokenLayout& layout);
/// The half's output from that: its last layer, and `x_ND` added; `x_ND` where the block lacks the half.
at::Tensor half_output(const BlockWeights& weights, Half half, double eps, const at::Tensor& inner_NC,
                       const at::Tensor& x_ND);

/// What block_backward needs, computed again: the block's output, and the product that makes it where no norm
/// follows, are left out.
BlockActivations block_activations(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                                   const TokenLayout& layout);

/// Gradient of the input; adds the gradients of the weights to `gradients` (views into a float32 buffer,
/// float64 for float64).  Consumes the activations.
at::Tensor block_backward(const BlockWeights& weights, const at::Tensor& x_ND, BlockActivations kept,
                          const at::Tensor& gout_ND, const TokenLayout& layout,
                          const BlockWeights& gradients);

/// Packs the matrices and copies the vectors: on a CPU no view of the flat buffer is left.
void pack_for_texts(BlockWeights& weights);

/// What queries find in the keys and values of their texts, [N, H E], of rows of queries, keys and values.
using Attend = std::function<at::Tensor(const at::Tensor& qkv_NX, const ops::ScoreRule& rule)>;

/// Forward of tokens of several texts, which may go on from earlier passes.  On a CPU what a token becomes
/// does not depend on the other texts: its bits are those that it gets alone.
at::Tensor block_of_texts(const BlockWeights& weights, double eps, const at::Tensor& x_ND,
                          const TokenLayout& layout, const Attend& attend);

}  // namespace retort::model
