#pragma once
// Pieces of the mathematics of losses on logits.  Shape legend beside logit_loss.h.

#include <ATen/core/Tensor.h>

namespace retort::loss {

/// Logits over the temperature less the largest of their row: a copy.
at::Tensor shifted_logits(const at::Tensor& logits_RV, double temperature);

/// Turns shifted logits into probabilities; returns the log of the sum of their exponentials, [R, 1].
at::Tensor to_probabilities_(at::Tensor shifted_RV);

}  // namespace retort::loss
