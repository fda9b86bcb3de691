#pragma once
// From tokens to scores: the output of a model's last block, and what its logits say about the next tokens.
// Logits are made in chunks of rows, so no tokens x vocabulary tensor exists.
//
// Shape legend: N packed tokens, R rows of a chunk, D hidden, V vocabulary.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "retort/architecture/layout.h"
#include "retort/eval/confidence.h"
#include "retort/model/block.h"
#include "retort/model/head.h"
#include "retort/model/tokens.h"
#include "retort/shard/parameters.h"

namespace retort::eval {

/// Sums over counted targets, nats; kl is KL(teacher || model).
struct ScoreSums {
  std::int64_t targets = 0;
  double nll = 0, kl = 0;
  std::int64_t top1_correct = 0,
               top1_agreement = 0;  ///< the model's most likely token is the next one; the teacher's
  ConfidenceBins confidence;        ///< of the model
  double teacher_nll = 0;
  std::int64_t teacher_top1_correct = 0;
  double head_seconds = 0;  ///< spent on the model's own final norm and head product
  void add(const ScoreSums& other);
};

/// Final norm and head product in float32 whatever the compute type (float64 for float64): logits of bfloat16
/// are too coarse for a KL.
class HeadScorer {
 public:
  /// `head_unit_flat` is the flat buffer of layout.head_unit(); it may be released afterwards if it was
  /// widened.  `num_tokens`: the first rows that are tokens, 0: all; the others are padding.
  HeadScorer(const architecture::Config& config, const architecture::Layout& layout,
             const at::Tensor& head_unit_flat, std::int64_t num_tokens = 0);
  at::Tensor logits(const at::Tensor& hidden_RD) const;
  std::int64_t vocab_size() const { return head_.matrix_VD.size(0); }
  std::int64_t num_tokens() const { return num_tokens_; }
  at::Device device() const { return head_.matrix_VD.device(); }

 private:
  model::HeadWeights head_;  ///< the norm has the type of the logits
  double eps_;
  model::LogitRule rule_;
  std::int64_t num_tokens_;
};

/// Scores of single rows, float32, or float64 of a float64 model; 0 where a row does not count.
struct RowScores {
  at::Tensor nll_N;
  at::Tensor kl_N, teacher_nll_N;  ///< undefined without a teacher
};

/// Scores the outputs of the last block, before the final norm; targets_N is int64, -1 where a row does not
/// count. `teacher` may be null; `row_scores`, where given, receives the scores of each row.  A model's own
/// loss and the probability of its most likely token are among all rows of its head, as transformers has
/// them; that token is one of its tokens.  What compares the two is over the tokens that both have.  A model
/// that is its own teacher, with the same hidden states, makes its logits once.  Throws ModelError when their
/// numbers of tokens differ.
ScoreSums score_hidden(const HeadScorer& student, const at::Tensor& hidden_ND, const HeadScorer* teacher,
                       const at::Tensor& teacher_hidden_ND, const at::Tensor& targets_N,
                       std::int64_t chunk_rows, RowScores* row_scores = nullptr);

/// Rows of the embedding, as the first block takes them; acquires its unit.
at::Tensor embedded(shard::Parameters& parameters, const at::Tensor& ids_N);

/// What a block makes of the hidden states before it.
using ThroughBlock =
    std::function<at::Tensor(const model::BlockWeights& weights, const at::Tensor& hidden_ND)>;
/// Output of the last block for tokens that `through` takes from block to block; acquires one unit after the
/// other.
at::Tensor through_blocks(shard::Parameters& parameters, const at::Tensor& ids_N,
                          const ThroughBlock& through);

/// The same of packed tokens.
at::Tensor forward_hidden(shard::Parameters& parameters, const at::Tensor& ids_N,
                          const model::TokenLayout& layout);

}  // namespace retort::eval
