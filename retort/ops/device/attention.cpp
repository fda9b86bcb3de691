#include "retort/ops/device/attention.h"

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <torch/csrc/autograd/autograd.h>

namespace retort::ops::device {
namespace {

// [N, H, E] rows begin..begin+length as the [1, H, L, E] that the kernels take; no copy.
at::Tensor heads_first(const at::Tensor& x_NHE, std::int64_t begin, std::int64_t length) {
  return x_NHE.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
}

at::Tensor tokens_first(const at::Tensor& x_1HLE) {
  return x_1HLE.squeeze(0).transpose(0, 1);
}

// Where no fused kernel takes heads that share keys, the library would form a matrix of length x length:
// there each head is given keys of its own.
at::Tensor fused_attention(const at::Tensor& q_1HLE, const at::Tensor& k_1KLE, const at::Tensor& v_1KLE) {
  const auto groups = q_1HLE.size(1) / k_1KLE.size(1);
  const auto attend = [&](const at::Tensor& k, const at::Tensor& v, bool shared) {
    return at::scaled_dot_product_attention(q_1HLE, k, v, {}, 0.0, /*is_causal=*/true, {}, shared);
  };
  if (groups == 1) return attend(k_1KLE, v_1KLE, false);
  const auto choice = at::_fused_sdp_choice(q_1HLE, k_1KLE, v_1KLE, {}, 0.0, true, {}, true);
  if (choice != static_cast<std::int64_t>(at::SDPBackend::math)) return attend(k_1KLE, v_1KLE, true);
  return attend(k_1KLE.repeat_interleave(groups, 1), v_1KLE.repeat_interleave(groups, 1), false);
}

}  // namespace

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts) {
  Attention result{at::empty(q_NHE.sizes(), q_NHE.options()), {}};
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto begin = starts[i], length = starts[i + 1] - begin;
    const auto segment = [&](const at::Tensor& x) { return heads_first(x, begin, length); };
    result.out_NHE.narrow(0, begin, length)
        .copy_(tokens_first(fused_attention(segment(q_NHE), segment(k_NKE), segment(v_NKE))));
  }
  return result;
}

// Each kernel keeps something else for its backward.  So a segment is computed again under autograd, whose
// graph lives no longer than the segment: the same few lines on every device.
void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention&, const std::vector<std::int64_t>& starts,
                        at::Tensor gq_NHE, at::Tensor gk_NKE, at::Tensor gv_NKE) {
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto begin = starts[i], length = starts[i + 1] - begin;
    const auto leaf = [&](const at::Tensor& x) {
      return heads_first(x, begin, length).detach().requires_grad_(true);
    };
    const auto gradients = [&] {
      const at::AutoGradMode recorded(true);
      const auto q = leaf(q_NHE), k = leaf(k_NKE), v = leaf(v_NKE);
      return torch::autograd::grad({fused_attention(q, k, v)}, {q, k, v},
                                   {heads_first(gout_NHE, begin, length)});
    }();
    gq_NHE.narrow(0, begin, length).copy_(tokens_first(gradients[0]));
    gk_NKE.narrow(0, begin, length).copy_(tokens_first(gradients[1]));
    gv_NKE.narrow(0, begin, length).copy_(tokens_first(gradients[2]));
  }
}

}  // namespace retort::ops::device
