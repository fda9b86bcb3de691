#include "retort/ops/cpu/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>

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

}  // namespace retort::ops::cpu
