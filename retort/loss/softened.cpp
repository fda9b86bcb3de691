#include "retort/loss/softened.h"

#include <ATen/ATen.h>

namespace retort::loss {

at::Tensor shifted_logits(const at::Tensor& logits_RV, double temperature) {
  auto shifted_RV = temperature == 1 ? logits_RV.clone() : logits_RV.div(temperature);
  return shifted_RV.sub_(shifted_RV.amax(-1, true));
}

at::Tensor to_probabilities_(at::Tensor shifted_RV) {
  const auto sum_R1 = shifted_RV.exp_().sum(-1, true);
  shifted_RV.div_(sum_R1);
  return sum_R1.log();
}

}  // namespace retort::loss
