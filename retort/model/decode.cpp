#include <ATen/ATen.h>

#include "retort/model/block.h"
#include "retort/ops/matrix_product.h"

namespace retort::model {

KeyValueCache make_cache(const architecture::Block& shape, std::int64_t max_tokens,
                         const at::TensorOptions& options) {
  if (!shape.attention) return {};
  const std::vector<std::int64_t> size = {max_tokens, shape.attention->num_kv_heads,
                                          shape.attention->head_dim};
  return {at::empty(size, options), at::empty(size, options), 0};
}

at::Tensor block_decode(const BlockWeights& w, double eps, const at::Tensor& x_ND, const TokenLayout& layout,
                        KeyValueCache& cache) {
  // The mask of attention_cached makes prefill and single tokens one case.
  auto mid_ND = x_ND;
  if (w.shape.attention) {
    const auto& shape = *w.shape.attention;
    const auto count = x_ND.size(0), q = shape.num_heads * shape.head_dim,
               kv = shape.num_kv_heads * shape.head_dim;
    auto qkv_NX = ops::matrix_product(ops::rms_norm(x_ND, w.attention_norm_D, eps).y_ND, w.qkv_XD.t());
    ops::apply_rotary(qkv_NX, shape.num_heads + shape.num_kv_heads, shape.head_dim,
                      layout.rotary.at(shape.head_dim), 1);
    const auto part = [&](std::int64_t begin, std::int64_t width) {
      return qkv_NX.narrow(1, begin, width).reshape({count, width / shape.head_dim, shape.head_dim});
    };
    cache.k_MKE.narrow(0, cache.tokens, count).copy_(part(q, kv));
    cache.v_MKE.narrow(0, cache.tokens, count).copy_(part(q + kv, kv));
    cache.tokens += count;
    const auto out_NHE = ops::attention_cached(part(0, q), cache.k_MKE.narrow(0, 0, cache.tokens),
                                               cache.v_MKE.narrow(0, 0, cache.tokens));
    mid_ND = ops::matrix_product(out_NHE.flatten(1), w.output_DY.t()).add_(x_ND);
  }
  if (!w.down_DI.defined()) return mid_ND;
  const auto channels_NI =
      ops::swiglu(ops::matrix_product(ops::rms_norm(mid_ND, w.mlp_norm_D, eps).y_ND, w.gate_up_2ID.t()));
  return ops::matrix_product(channels_NI, w.down_DI.t()).add_(mid_ND);
}

}  // namespace retort::model
