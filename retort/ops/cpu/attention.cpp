#include "retort/ops/cpu/attention.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>

#include <cmath>

#include "retort/ops/cpu/dispatch.h"
#include "retort/ops/operands.h"

namespace retort::ops::cpu {
namespace {

// Documents are short and many: whole segments are spread over the threads, and the kernels inside then run
// on one.  With few segments they stay in a row, and each kernel uses all threads.  The numbers are the same
// either way.
template <typename Body>
void for_each_segment(const std::vector<std::int64_t>& starts, Body body) {
  const auto segments = static_cast<std::int64_t>(starts.size()) - 1;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    // Gradient mode is a property of a thread, and begins switched on.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      body(starts[i], starts[i + 1] - starts[i]);
  };
  if (segments < 4 * at::get_num_threads()) return run(0, segments);
  at::parallel_for(0, segments, 1, run);
}

// [N, H, E] rows begin..begin+length as the [1, H, L, E] that the kernels take; no copy.
at::Tensor heads_first(const at::Tensor& x_NHE, std::int64_t begin, std::int64_t length) {
  return x_NHE.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
}

at::Tensor tokens_first(const at::Tensor& x_1HLE) {
  return x_1HLE.squeeze(0).transpose(0, 1);
}

// The backward of one segment in blocks of query rows, each against the keys that it can see: nothing of size
// L x L, and half of the products of a square.  Heads that share keys are rows of one product, so their sum
// needs no step of its own. Scores are made in float32 even of bfloat16, which is too coarse to be
// exponentiated; the other products are made in the inputs' type.  Source: Dao et al. 2022, algorithm 4; the
// log-sum-exp comes from the forward pass.
struct SegmentGradient {
  static constexpr std::int64_t kRows = 128;
  at::Tensor q_HLE, k_KLE, v_KLE, gout_HLE;
  at::Tensor exact_q_HLE, exact_k_KLE;  ///< float32 at least
  at::Tensor lse_HL, delta_HL;

  std::int64_t length() const { return q_HLE.size(1); }
  std::int64_t groups() const { return q_HLE.size(0) / k_KLE.size(0); }

  // Query rows begin..begin+rows of all heads, as [K, groups * rows, ...].
  at::Tensor rows_of(const at::Tensor& x_HLC, std::int64_t begin, std::int64_t rows) const {
    return x_HLC.narrow(1, begin, rows).reshape({k_KLE.size(0), groups() * rows, -1});
  }

  void write(at::Tensor gq_LHE, at::Tensor gk_LKE, at::Tensor gv_LKE) const {
    auto gk_KLE = at::zeros_like(k_KLE), gv_KLE = at::zeros_like(v_KLE);
    for (std::int64_t begin = 0; begin < length(); begin += kRows) {
      const auto rows = std::min(kRows, length() - begin), keys = begin + rows;
      const auto q = rows_of(q_HLE, begin, rows), g = rows_of(gout_HLE, begin, rows);
      const auto k = k_KLE.narrow(1, 0, keys), v = v_KLE.narrow(1, 0, keys);
      const auto scores =
          at::bmm(rows_of(exact_q_HLE, begin, rows), exact_k_KLE.narrow(1, 0, keys).transpose(1, 2));
      auto gs = at::bmm(g, v.transpose(1, 2));
      const auto p = scores.scalar_type() == gs.scalar_type() ? scores : at::empty_like(gs);
      to_gradients(scores, p, gs, begin, rows);
      gq_LHE.narrow(0, begin, rows).copy_(at::bmm(gs, k).view({q_HLE.size(0), rows, -1}).transpose(0, 1));
      gk_KLE.narrow(1, 0, keys).add_(at::bmm(gs.transpose(1, 2), q));
      gv_KLE.narrow(1, 0, keys).add_(at::bmm(p.transpose(1, 2), g));
    }
    gk_LKE.copy_(gk_KLE.transpose(0, 1));
    gv_LKE.copy_(gv_KLE.transpose(0, 1));
  }

  void to_gradients(const at::Tensor& scores, const at::Tensor& p, const at::Tensor& gs, std::int64_t begin,
                    std::int64_t rows) const {
    const auto heads = q_HLE.size(0), keys = p.size(2);
    const auto lse = lse_HL.narrow(1, begin, rows).contiguous(),
               delta = delta_HL.narrow(1, begin, rows).contiguous();
    const double scale = 1.0 / std::sqrt(static_cast<double>(q_HLE.size(2)));
    with_element(p, [&](auto element) {
      using T = typename decltype(element)::type;
      using C = typename ComputeOf<T>::type;
      at::parallel_for(0, heads, 1, [&](std::int64_t first, std::int64_t last) {
        for (auto head = first; head < last; ++head) {
          const auto at = head * rows * keys;
          kernels<T>().attention_gradients(data<C>(scores) + at, data<T>(p) + at, data<T>(gs) + at,
                                           data<C>(lse) + head * rows, data<C>(delta) + head * rows, scale,
                                           rows, keys, begin + 1);
        }
      });
    });
  }
};

}  // namespace

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts) {
  const auto tokens = q_NHE.size(0), heads = q_NHE.size(1);
  Attention result{at::empty({tokens, heads, q_NHE.size(2)}, q_NHE.options()),
                   at::empty({heads, tokens}, q_NHE.options().dtype(statistics_type(q_NHE)))};
  for_each_segment(starts, [&](std::int64_t begin, std::int64_t length) {
    const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads_first(q_NHE, begin, length), heads_first(k_NKE, begin, length),
        heads_first(v_NKE, begin, length), 0.0, true);
    result.out_NHE.narrow(0, begin, length).copy_(tokens_first(out));
    result.lse_HN.narrow(1, begin, length).copy_(lse.squeeze(0));
  });
  return result;
}

void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE) {
  for_each_segment(starts, [&](std::int64_t begin, std::int64_t length) {
    const auto type = statistics_type(q_NHE);
    const auto heads_of = [&](const at::Tensor& x) {
      return x.narrow(0, begin, length).transpose(0, 1).contiguous();
    };
    SegmentGradient segment{.q_HLE = heads_of(q_NHE),
                            .k_KLE = heads_of(k_NKE),
                            .v_KLE = heads_of(v_NKE),
                            .gout_HLE = heads_of(gout_NHE),
                            .exact_q_HLE = {},
                            .exact_k_KLE = {},
                            .lse_HL = forward.lse_HN.narrow(1, begin, length),
                            .delta_HL = {}};
    segment.exact_q_HLE = segment.q_HLE.to(type);
    segment.exact_k_KLE = segment.k_KLE.to(type);
    segment.delta_HL = (segment.gout_HLE.to(type) * heads_of(forward.out_NHE)).sum(-1);
    segment.write(gq_NHE.narrow(0, begin, length), gk_NKE.narrow(0, begin, length),
                  gv_NKE.narrow(0, begin, length));
  });
}

}  // namespace retort::ops::cpu
