#include "retort/model/head.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/matrix_product.h"

namespace retort::model {
namespace {

at::Tensor present_view_of(const architecture::Unit& unit, const at::Tensor& flat, architecture::Role role) {
  const auto* tensor = unit.find(role);
  base::ensure(tensor != nullptr, "a unit lacks a tensor that the layout promises");
  return flat.narrow(0, tensor->offset, tensor->numel).view(tensor->shape);
}

// As some classes of transformers round the factor to the type of the embedding.
double rounded(double factor, at::ScalarType type) {
  return at::scalar_tensor(factor, type).item<double>();
}

}  // namespace

HeadWeights head_weights(const architecture::Layout& layout, const at::Tensor& flat) {
  const auto& unit = layout.units[static_cast<std::size_t>(layout.head_unit())];
  return {present_view_of(unit, flat, architecture::Role::final_norm),
          present_view_of(unit, flat, layout.head_role())};
}

at::Tensor embedding_matrix(const architecture::Layout& layout, const at::Tensor& flat) {
  return present_view_of(layout.units.front(), flat, architecture::Role::embedding);
}

at::Tensor embed(const at::Tensor& matrix_VD, const at::Tensor& ids_N, double factor) {
  auto rows_ND = matrix_VD.index_select(0, ids_N);
  if (factor != 1) rows_ND.mul_(rounded(factor, rows_ND.scalar_type()));
  return rows_ND;
}

void embed_backward(const at::Tensor& grad_ND, const at::Tensor& ids_N, double factor,
                    at::Tensor gradient_VD) {
  gradient_VD.index_add_(0, ids_N, grad_ND.to(gradient_VD.scalar_type()),
                         rounded(factor, grad_ND.scalar_type()));
}

LogitRule logit_rule(const architecture::Config& config) {
  return {config.logits_factor, config.logits_softcap};
}

void bend_logits_(at::Tensor products_NV, const LogitRule& rule) {
  if (rule.factor != 1) products_NV.mul_(rule.factor);
  if (rule.softcap > 0) products_NV.div_(rule.softcap).tanh_().mul_(rule.softcap);
}

void bend_logits_backward_(at::Tensor gradient_NV, at::Tensor logits_NV, const LogitRule& rule) {
  if (rule.softcap > 0)
    gradient_NV.mul_(logits_NV.square_().mul_(-1 / (rule.softcap * rule.softcap)).add_(1));
  if (rule.factor != 1) gradient_NV.mul_(rule.factor);
}

at::Tensor logits(const HeadWeights& head, double eps, const LogitRule& rule, const at::Tensor& hidden_ND) {
  auto logits_NV = ops::linear(ops::rms_norm(hidden_ND, head.norm_D, eps).y_ND, head.matrix_VD);
  bend_logits_(logits_NV, rule);
  return logits_NV;
}

}  // namespace retort::model
