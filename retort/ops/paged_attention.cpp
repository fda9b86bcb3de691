#include "retort/ops/paged_attention.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/kernels/cpu/paged_attention.h"
#include "retort/kernels/device/attention.h"
#include "retort/ops/operation_clock.h"
#include "retort/ops/path.h"

namespace retort::ops {
namespace {

std::int32_t page_of(const PagedText& text, std::int64_t token) {
  return text.pages[static_cast<std::size_t>(token / kPageTokens)];
}

Heads heads_of(const at::Tensor& qkv_NX, const KeyValuePages& pages) {
  return split_heads(qkv_NX, pages.k_PTKE.size(2), pages.k_PTKE.size(3));
}

at::Tensor on_device_of(std::span<const std::int64_t> values, const at::Tensor& like) {
  const auto host = at::tensor(at::ArrayRef<std::int64_t>(values.data(), values.size()), at::kLong);
  return host.to(like.device());
}

// Keys or values of the tokens from `first` on, [M, K, E]; zeros where a page is not held.
at::Tensor gathered(const at::Tensor& x_PTKE, const PagedText& text, std::int64_t first) {
  std::vector<std::int64_t> pages;
  const auto begin = first / kPageTokens;
  std::int64_t missing = 0;  // they lie at the beginning
  for (auto page = begin; page * kPageTokens < text.tokens; ++page) {
    const auto held = page_of(text, page * kPageTokens);
    if (held < 0) ++missing;
    pages.push_back(std::max(held, 0));
  }
  const auto all_MTKE = x_PTKE.index_select(0, on_device_of(pages, x_PTKE));
  all_MTKE.narrow(0, 0, missing).zero_();
  const auto all_MKE = all_MTKE.flatten(0, 1);
  return all_MKE.narrow(0, first - begin * kPageTokens, text.tokens - first);
}

// One text after the other, by the operations of the device's library.
at::Tensor composed(const at::Tensor& q_NHE, std::span<const PagedText> texts, const KeyValuePages& pages,
                    const ScoreRule& rule) {
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(0, 1); };
  auto out_NHE = at::empty(q_NHE.sizes(), q_NHE.options());
  for (std::size_t n = 0; n < texts.size(); ++n) {
    const auto row = static_cast<std::int64_t>(n);
    const auto first = rule.window > 0 ? std::max<std::int64_t>(0, texts[n].tokens - rule.window) : 0;
    const auto k_MKE = gathered(pages.k_PTKE, texts[n], first);
    const auto v_MKE = gathered(pages.v_PTKE, texts[n], first);
    const auto out_HNE =
        kernels::device::composed_attention(heads_first(q_NHE.narrow(0, row, 1)), heads_first(k_MKE),
                                            heads_first(v_MKE), k_MKE.size(0) - 1, rule);
    out_NHE.narrow(0, row, 1).copy_(heads_first(out_HNE));
  }
  return out_NHE.flatten(1);
}

}  // namespace

void keep_in_pages(const at::Tensor& qkv_NX, std::span<const PagedText> texts, const KeyValuePages& pages) {
  const InOperation timed(Operation::attention);
  if (path_of(qkv_NX.device()) == Path::cpu) return kernels::cpu::keep_in_pages(qkv_NX, texts, pages);
  std::vector<std::int64_t> rows, places;
  for (std::size_t n = 0; n < texts.size(); ++n) {
    const auto token = texts[n].tokens - 1;
    if (const auto page = page_of(texts[n], token); page >= 0) {
      rows.push_back(static_cast<std::int64_t>(n));
      places.push_back(page * kPageTokens + token % kPageTokens);
    }
  }
  const auto rows_N = on_device_of(rows, qkv_NX), places_N = on_device_of(places, qkv_NX);
  const auto keep = [&](const at::Tensor& x_PTKE, const at::Tensor& new_NKE) {
    x_PTKE.flatten(0, 1).index_copy_(0, places_N, new_NKE.index_select(0, rows_N));
  };
  const auto heads = heads_of(qkv_NX, pages);
  keep(pages.k_PTKE, heads.k_NKE);
  keep(pages.v_PTKE, heads.v_NKE);
}

at::Tensor attention_of_texts(const at::Tensor& qkv_NX, std::span<const PagedText> texts,
                              const KeyValuePages& pages, const ScoreRule& given) {
  const InOperation timed(Operation::attention);
  const auto rule = given.of_heads(pages.k_PTKE.size(3));
  base::ensure(qkv_NX.is_contiguous() && qkv_NX.size(0) == std::ssize(texts),
               "attention_of_texts takes a dense row for each text");
  const auto q_NHE = heads_of(qkv_NX, pages).q_NHE;
  if (path_of(qkv_NX.device()) == Path::cpu)
    return kernels::cpu::attention_of_texts(q_NHE, texts, pages, rule);
  return composed(q_NHE, texts, pages, rule);
}

at::Tensor attention_of_end(const at::Tensor& qkv_NX, const PagedText& text, const KeyValuePages& pages,
                            const ScoreRule& rule) {
  const auto q_NHE = heads_of(qkv_NX, pages).q_NHE;
  // On a CPU tiles begin where those of the whole text do.
  const auto unseen = text.tokens - q_NHE.size(0) + 1 - rule.window;
  const bool drops = rule.window > 0 && path_of(qkv_NX.device()) != Path::cpu;
  const auto first = drops ? std::max<std::int64_t>(0, unseen) : 0;
  return attention_of_end(q_NHE, gathered(pages.k_PTKE, text, first), gathered(pages.v_PTKE, text, first),
                          rule)
      .flatten(1);
}

}  // namespace retort::ops
