#pragma once
// SquareHead: relative mean square error of hidden states, each block's by the teacher's mean square, for
// each packed sequence on its own.
//
// Shape legend: N tokens of a micro-batch, D hidden of the student, F hidden of the teacher.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/loss/hidden_loss.h"

namespace retort::loss {

/// The mean over student blocks of (error / (teacher + eps)), both means over the tokens and features of one
/// sequence, averaged over sequences by their share of the step's tokens.  So no result depends on how
/// sequences are grouped. Source: Dickmann et al. 2025, eq. 1, whose means run over the batch; docs/decisions
/// has the difference.  One thread uses it at a time.
class SquareHead final : public HiddenLoss {
 public:
  /// `features`: the teacher's feature that each of the student's is compared with; empty: the teacher's are
  /// pooled where their number differs.
  SquareHead(const LossOptions& options, std::vector<std::int64_t> layer_map,
             const std::vector<std::int64_t>& features = {});

  std::int64_t teacher_block(std::int64_t block) const override {
    return layer_map_[static_cast<std::size_t>(block)];
  }
  at::Tensor add(const HiddenStates& states, at::Tensor grad_ND) const override;

 private:
  at::Tensor comparable(const at::Tensor& teacher_NF, std::int64_t width) const;
  const at::Tensor& features_on(at::Device device) const;

  double eps_;
  at::Tensor features_D;                // undefined: pooled
  mutable at::Tensor features_there_D;  // where hidden states are: copied for the first of them alone
  std::vector<std::int64_t> layer_map_;
};

/// Features pooled to `width` bins: bin k is the mean of floor(k F / width) up to ceil((k + 1) F / width).
at::Tensor pool_features(const at::Tensor& x_NF, std::int64_t width);

}  // namespace retort::loss
