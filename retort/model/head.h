#pragma once
// The two ends of a decoder: token embedding, and final norm with the matrix that makes logits.
//
// Shape legend: N tokens, D hidden, V vocabulary.

#include <ATen/core/Tensor.h>

#include "retort/architecture/config.h"
#include "retort/architecture/layout.h"

namespace retort::model {

struct HeadWeights {
  at::Tensor norm_D, matrix_VD;
};

/// What becomes of the products of the final norm and the matrix.
struct LogitRule {
  double factor = 1;   ///< multiplies them
  double softcap = 0;  ///< then they become softcap * tanh(x / softcap); 0: they stay
};
LogitRule logit_rule(const architecture::Config& config);
/// Applies a rule in place.
void bend_logits_(at::Tensor products_NV, const LogitRule& rule);
/// Turns the gradient of logits into that of products; the logits are used up.
void bend_logits_backward_(at::Tensor gradient_NV, at::Tensor logits_NV, const LogitRule& rule);

/// Views of the head unit's flat buffer (weights or gradients).
HeadWeights head_weights(const architecture::Layout& layout, const at::Tensor& flat);
/// The embedding matrix in unit 0's flat buffer (weights or gradients).
at::Tensor embedding_matrix(const architecture::Layout& layout, const at::Tensor& flat);

/// Rows of the embedding times `factor`, rounded to their type; ids_N int64.
at::Tensor embed(const at::Tensor& matrix_VD, const at::Tensor& ids_N, double factor);
/// Adds the rows of grad_ND times `factor`, rounded to their type, to the rows ids_N of gradient_VD.  In the
/// order of tokens on a CPU; on an accelerator in any order, so bits may differ from run to run.
void embed_backward(const at::Tensor& grad_ND, const at::Tensor& ids_N, double factor,
                    at::Tensor gradient_VD);

/// Logits of hidden states: final norm, then the matrix, then the rule.
at::Tensor logits(const HeadWeights& head, double eps, const LogitRule& rule, const at::Tensor& hidden_ND);

}  // namespace retort::model
