#include "retort/kernels/cpu/paged_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "retort/base/index.h"
#include "retort/kernels/cpu/attention.h"
#include "retort/kernels/cpu/attention_parts.h"
#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/team.h"

namespace retort::kernels::cpu {
namespace {

// Of keys and values: with less to read for a head, several heads go to one thread.
constexpr std::int64_t kLeastBytesOfTexts = 1 << 15;

std::int64_t mean_tokens(std::span<const PagedText> texts) {
  std::int64_t sum = 0;
  for (const auto& text : texts) sum += text.tokens;
  return std::max<std::int64_t>(1, sum / std::max<std::int64_t>(1, std::ssize(texts)));
}

std::int64_t most_tokens(std::span<const PagedText> texts) {
  std::int64_t most = 0;
  for (const auto& text : texts) most = std::max(most, text.tokens);
  return most;
}

}  // namespace

void keep_in_pages(const at::Tensor& qkv_NX, std::span<const PagedText> texts, const KeyValuePages& pages) {
  const auto bytes = static_cast<std::size_t>(qkv_NX.element_size()), width = base::to_size(qkv_NX.size(1));
  const auto stride = base::to_size(pages.k_PTKE.stride(1));
  const auto* row = data<const std::byte>(qkv_NX) + (width - 2 * stride) * bytes;
  auto *k = data<std::byte>(pages.k_PTKE), *v = data<std::byte>(pages.v_PTKE);
  for (const auto& text : texts) {
    const auto token = text.tokens - 1;
    if (const auto page = text.pages[base::to_size(token / kPageTokens)]; page >= 0) {
      const auto place = base::to_size(page * kPageTokens + token % kPageTokens) * stride * bytes;
      std::memcpy(k + place, row, stride * bytes);
      std::memcpy(v + place, row + stride * bytes, stride * bytes);
    }
    row += width * bytes;
  }
}

at::Tensor attention_of_texts(const at::Tensor& q_NHE, std::span<const PagedText> texts,
                              const KeyValuePages& pages, const ScoreRule& rule) {
  const auto heads = q_NHE.size(1), head_dim = q_NHE.size(2), kv_heads = pages.k_PTKE.size(2);
  const auto groups = heads / kv_heads, row_elements = q_NHE.stride(0);
  auto out_NY = at::empty({q_NHE.size(0), heads * head_dim}, q_NHE.options());
  with_element(q_NHE, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    const T *q = data<T>(q_NHE), *k = data<T>(pages.k_PTKE), *v = data<T>(pages.v_PTKE);
    T* const out = data<T>(out_NY);
    const auto bytes = 2 * mean_tokens(texts) * head_dim * static_cast<std::int64_t>(sizeof(T));
    const auto room = most_tokens(texts) + 2 * head_dim;
    for_ranges(std::ssize(texts) * heads, 1 + kLeastBytesOfTexts / bytes,
               [&](std::int64_t begin, std::int64_t end) {
                 const auto work = std::make_unique_for_overwrite<C[]>(static_cast<std::size_t>(room));
                 for (auto i = begin; i < end; ++i) {
                   const auto row = i / heads, head = i % heads;
                   const auto& text = texts[static_cast<std::size_t>(row)];
                   const auto at = head / groups * head_dim;
                   kernels<T>().attend_pages({.q_E = q + row * row_elements + head * head_dim,
                                              .k = k + at,
                                              .v = v + at,
                                              .pages = text.pages.data(),
                                              .page_tokens = kPageTokens,
                                              .first = first_key(text.tokens - 1, rule.window),
                                              .tokens = text.tokens,
                                              .stride = kv_heads * head_dim,
                                              .head_dim = head_dim},
                                             scores_of(rule), work.get(),
                                             out + row * heads * head_dim + head * head_dim);
                 }
               });
  });
  return out_NY;
}

}  // namespace retort::kernels::cpu
