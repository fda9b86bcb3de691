#include "retort/model/head.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/matrix_product.h"

namespace retort::model {
namespace {

at::Tensor view_of(const architecture::Unit& unit, const at::Tensor& flat, architecture::Role role) {
  const auto* tensor = unit.find(role);
  base::ensure(tensor != nullptr, "a unit lacks a tensor that the layout promises");
  return flat.narrow(0, tensor->offset, tensor->numel).view(tensor->shape);
}

}  // namespace

HeadWeights head_weights(const architecture::Layout& layout, const at::Tensor& flat) {
  const auto& unit = layout.units[static_cast<std::size_t>(layout.head_unit())];
  return {view_of(unit, flat, architecture::Role::final_norm), view_of(unit, flat, layout.head_role())};
}

at::Tensor embedding_matrix(const architecture::Layout& layout, const at::Tensor& flat) {
  return view_of(layout.units.front(), flat, architecture::Role::embedding);
}

at::Tensor embed(const at::Tensor& matrix_VD, const at::Tensor& ids_N) {
  return matrix_VD.index_select(0, ids_N);
}

void embed_backward(const at::Tensor& grad_ND, const at::Tensor& ids_N, at::Tensor gradient_VD) {
  gradient_VD.index_add_(0, ids_N, grad_ND.to(gradient_VD.scalar_type()));
}

at::Tensor logits(const HeadWeights& head, double eps, const at::Tensor& hidden_ND) {
  return ops::linear(ops::rms_norm(hidden_ND, head.norm_D, eps).y_ND, head.matrix_VD);
}

}  // namespace retort::model
