#include "retort/calibrate/top_k_reference.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace retort::calibrate {

std::int64_t top_k_bytes(std::int64_t tokens, std::int64_t vocab_size, std::int64_t item_bytes) {
  constexpr std::int64_t kIdBytes = 4;
  return tokens * std::min(kTopK, vocab_size) * (kIdBytes + std::max<std::int64_t>(4, item_bytes));
}

void TopKReference::keep(const Batch& batch, const at::Tensor& hidden_ND) {
  const auto targets = batch.targets_N.split(chunk_rows_);
  auto& chunks = batches_.emplace_back();
  std::vector<at::Tensor> nll;
  for (const auto& rows_RD : hidden_ND.split(chunk_rows_)) {
    const auto logits_RV = scorer_.logits(rows_RD);
    chunks.push_back(ops::top_k_teacher(logits_RV, kTopK));
    nll.push_back(ops::score_top_k(logits_RV, chunks.back(), targets[nll.size()]).nll_N);
  }
  nll_N_.push_back(at::cat(nll).to(at::kDouble));
}

bool TopKReference::is_finite() const {
  return nll_N_.back().isfinite().all().item<bool>();
}

void TopKReference::add_documents(std::size_t index, const Batch& batch, const at::Tensor& hidden_ND,
                                  std::vector<DocumentSums>& documents) const {
  const auto hidden = hidden_ND.split(chunk_rows_), targets = batch.targets_N.split(chunk_rows_);
  std::vector<at::Tensor> nll, kl, gap;
  for (std::size_t chunk = 0; chunk < hidden.size(); ++chunk) {
    auto scores = ops::score_top_k(scorer_.logits(hidden[chunk]), batches_[index][chunk], targets[chunk]);
    nll.push_back(std::move(scores.nll_N));
    kl.push_back(std::move(scores.kl_N));
    gap.push_back(std::move(scores.kl_gap_N));
  }
  calibrate::add_documents(batch, at::cat(nll).to(at::kDouble) - nll_N_[index], at::cat(kl), at::cat(gap),
                           documents);
}

}  // namespace retort::calibrate
