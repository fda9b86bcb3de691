#pragma once
// Attention of tokens of many texts, whose keys and values lie in pages of a common memory.
//
// Shape legend: N rows, H query heads, K key/value heads, E head_dim, X = (H + 2K) E, P pages of T tokens.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "retort/ops/attention.h"

namespace retort::ops {

using kernels::KeyValuePages;
using kernels::kPageTokens;
using kernels::PagedText;

constexpr std::int64_t pages_up_to(std::int64_t tokens) {
  return (tokens + kPageTokens - 1) / kPageTokens;
}

/// Writes the keys and values of rows of queries, keys and values: row n is the last token of `texts[n]`.
/// What falls into a page below 0 is not kept.
void keep_in_pages(const at::Tensor& qkv_NX, std::span<const PagedText> texts, const KeyValuePages& pages);

/// Attention of one token of each text, the last, to its text, [N, H E]; its own keys and values are in the
/// pages.  A row does not depend on the others.
at::Tensor attention_of_texts(const at::Tensor& qkv_NX, std::span<const PagedText> texts,
                              const KeyValuePages& pages, const ScoreRule& rule = {});

/// As attention_of_end() of keys and values that are in the pages, [N, H E].
at::Tensor attention_of_end(const at::Tensor& qkv_NX, const PagedText& text, const KeyValuePages& pages,
                            const ScoreRule& rule = {});

}  // namespace retort::ops
