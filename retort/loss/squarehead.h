#pragma once
// SquareHead: relative mean square error of hidden states, teacher-normalised per packed sequence.
//
// Shape legend: N tokens of a micro-batch, D hidden of the student, F hidden of the teacher.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/loss/options.h"

namespace retort::loss {

/// Mean over student layers of (error / (teacher + eps)), both means over the tokens and features of one
/// sequence, averaged over sequences by their share of the step's tokens.  So no result depends on how
/// sequences are grouped. Source: Dickmann et al. 2025, eq. 1, whose means run over the batch; docs/decisions
/// has the difference.
class SquareHead {
 public:
  /// `features`: the teacher's feature that each of the student's is compared with; empty: the teacher's are
  /// pooled where their number differs.
  SquareHead(const LossOptions& options, std::vector<std::int64_t> layer_map,
             const std::vector<std::int64_t>& features = {});

  double weight() const { return weight_; }
  /// Teacher block of student block i.
  std::int64_t teacher_block(std::int64_t i) const { return layer_map_[static_cast<std::size_t>(i)]; }

  /// Adds one layer's part for one micro-batch.  `bounds`: first token of each sequence, last N. step_tokens:
  /// tokens of the whole step over all ranks.  Writes weight * d/d(student) to grad_ND; returns the value
  /// without weight.
  double add(const at::Tensor& student_ND, const at::Tensor& teacher_NF,
             const std::vector<std::int64_t>& bounds, double step_tokens, at::Tensor grad_ND) const;

 private:
  at::Tensor comparable(const at::Tensor& teacher_NF, std::int64_t width) const;

  double weight_, eps_;
  at::Tensor features_D;  // undefined: pooled
  std::vector<std::int64_t> layer_map_;
};

/// Features pooled to `width` bins: bin k is the mean of floor(k F / width) up to ceil((k + 1) F / width).
at::Tensor pool_features(const at::Tensor& x_NF, std::int64_t width);

}  // namespace retort::loss
