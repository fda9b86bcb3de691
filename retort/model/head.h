#pragma once
// The two ends of a decoder: token embedding, and final norm with the matrix that makes logits.
//
// Shape legend: N tokens, D hidden, V vocabulary.

#include <ATen/core/Tensor.h>

#include "retort/architecture/layout.h"

namespace retort::model {

struct HeadWeights {
  at::Tensor norm_D, matrix_VD;
};

/// Views of the head unit's flat buffer (weights or gradients).
HeadWeights head_weights(const architecture::Layout& layout, const at::Tensor& flat);
/// The embedding matrix in unit 0's flat buffer (weights or gradients).
at::Tensor embedding_matrix(const architecture::Layout& layout, const at::Tensor& flat);

/// Rows of the embedding; ids_N int64.
at::Tensor embed(const at::Tensor& matrix_VD, const at::Tensor& ids_N);
/// Adds the rows of grad_ND to the rows ids_N of gradient_VD, in the order of tokens.
void embed_backward(const at::Tensor& grad_ND, const at::Tensor& ids_N, at::Tensor gradient_VD);

/// Logits of hidden states: final norm, then the matrix.
at::Tensor logits(const HeadWeights& head, double eps, const at::Tensor& hidden_ND);

}  // namespace retort::model
