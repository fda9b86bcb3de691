// Attention of a single token to those before it.
#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "retort/kernels/cpu/attention.h"
#include "retort/kernels/cpu/attention_parts.h"
#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/team.h"

namespace retort::kernels::cpu {
namespace {

// Of keys and values: with less to read for a head, several heads go to one thread.
constexpr std::int64_t kLeastBytes = 1 << 15;

}  // namespace

at::Tensor attention_cached(const at::Tensor& qkv_1X, KeyValueCache& cache, const ScoreRule& rule) {
  const auto kv_heads = cache.k_MKE.size(1), head_dim = cache.k_MKE.size(2), stride = kv_heads * head_dim;
  const auto heads = qkv_1X.size(1) / head_dim - 2 * kv_heads, groups = heads / kv_heads;
  const auto tokens = ++cache.tokens, first = first_key(tokens - 1, rule.window), seen = tokens - first;
  auto out_1Y = at::empty({1, heads * head_dim}, qkv_1X.options());
  with_element(qkv_1X, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    const T* q = data<T>(qkv_1X);
    T *k = data<T>(cache.k_MKE), *v = data<T>(cache.v_MKE), *out = data<T>(out_1Y);
    std::copy_n(q + heads * head_dim, stride, k + (tokens - 1) * stride);
    std::copy_n(q + heads * head_dim + stride, stride, v + (tokens - 1) * stride);
    const auto room = seen + 2 * head_dim;
    const auto work = std::make_unique_for_overwrite<C[]>(static_cast<std::size_t>(heads * room));
    const auto bytes = 2 * seen * head_dim * static_cast<std::int64_t>(sizeof(T));
    for_ranges(heads, 1 + kLeastBytes / bytes, [&](std::int64_t begin, std::int64_t end) {
      for (auto head = begin; head < end; ++head) {
        const auto at = first * stride + head / groups * head_dim;
        kernels<T>().attend(q + head * head_dim, k + at, v + at, scores_of(rule), seen, stride, head_dim,
                            work.get() + head * room, out + head * head_dim);
      }
    });
  });
  return out_1Y;
}

}  // namespace retort::kernels::cpu
