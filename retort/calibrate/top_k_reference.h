#pragma once
// What a reference model says about calibration text, kept as its most likely tokens: many changed models are
// compared with it, and its head is computed once.  Their KL is a lower bound (ops/top_k_teacher.h).
//
// Shape legend: N tokens of a batch, D hidden.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "retort/calibrate/loss_increase.h"
#include "retort/calibrate/text.h"
#include "retort/eval/score.h"
#include "retort/ops/top_k_teacher.h"

namespace retort::calibrate {

/// Tokens of a distribution that are kept, at 4 KiB for each token of text.
inline constexpr std::int64_t kTopK = 512;
/// Bytes of what is kept for `tokens`; `item_bytes` of the logits.
std::int64_t top_k_bytes(std::int64_t tokens, std::int64_t vocab_size, std::int64_t item_bytes);

/// What a KL is over.
enum class KlOver {
  top_k,      ///< the most likely tokens and one outcome for all others: a lower bound
  vocabulary  ///< exactly
};

class TopKReference {
 public:
  /// `scorer` has the head of both models.
  TopKReference(eval::HeadScorer scorer, std::int64_t chunk_rows)
      : scorer_(std::move(scorer)), chunk_rows_(chunk_rows) {}

  /// Keeps the next batch, from the output of the reference's last block.
  void keep(const Batch& batch, const at::Tensor& hidden_ND);
  /// Whether the losses of the last batch that was kept are finite.
  bool is_finite() const;
  /// Adds the scores of a changed model, by document; `index` counts the batches that were kept.
  void add_documents(std::size_t index, const Batch& batch, const at::Tensor& hidden_ND,
                     std::vector<DocumentSums>& documents) const;

 private:
  eval::HeadScorer scorer_;
  std::int64_t chunk_rows_;
  std::vector<std::vector<ops::TopKTeacher>> batches_;  // [batch][chunk of rows]
  std::vector<at::Tensor> nll_N_;                       // [batch]
};

}  // namespace retort::calibrate
