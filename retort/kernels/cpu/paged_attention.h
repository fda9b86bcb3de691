#pragma once
// Attention on a CPU to keys and values in pages.

#include <ATen/core/Tensor.h>

#include <span>

#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

/// As ops::keep_in_pages.
void keep_in_pages(const at::Tensor& qkv_NX, std::span<const PagedText> texts, const KeyValuePages& pages);

/// As ops::attention_of_texts, of the queries alone and with a scale.
at::Tensor attention_of_texts(const at::Tensor& q_NHE, std::span<const PagedText> texts,
                              const KeyValuePages& pages, const ScoreRule& rule);

}  // namespace retort::kernels::cpu
