#include "retort/optim/adamw.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/ops/optimizer_step.h"

namespace retort::optim {
namespace {

at::Tensor part(const at::Tensor& x, std::int64_t begin, std::int64_t count) {
  return x.defined() ? x.narrow(0, begin, count) : at::Tensor();
}

}  // namespace

AdamW::AdamW(const architecture::Layout& layout, const std::vector<UnitRange>& ranges, OptimOptions options,
             at::Device device, const WeightRule* rule)
    : layout_(layout), options_(options), rule_(rule) {
  const auto flat = at::TensorOptions().dtype(at::kFloat).device(device);
  for (const auto& range : ranges)
    units_.push_back({range, at::zeros({range.count}, flat), at::zeros({range.count}, flat)});
}

double AdamW::rate(architecture::Role role) const {
  const bool table = role == architecture::Role::embedding || role == architecture::Role::head;
  return table && options_.embedding_lr >= 0 ? options_.embedding_lr : options_.lr;
}

void AdamW::update(std::int64_t unit, const at::Tensor& p, const at::Tensor& g, const at::Tensor& copy,
                   std::int64_t step, double rate_factor, double gradient_scale) {
  base::ensure(options_.lr > 0, "a learning rate is chosen before training");
  auto& state = units_[static_cast<std::size_t>(unit)];
  const bool by_rule = rule_ && rule_->needs().own_copies;
  const auto fused_copy = by_rule ? at::Tensor() : copy;
  for (const auto& tensor : layout_.units[static_cast<std::size_t>(unit)].tensors) {
    const auto begin = std::max(tensor.offset, state.range.begin);
    const auto count = std::min(tensor.offset + tensor.numel, state.range.begin + state.range.count) - begin;
    if (count <= 0) continue;
    const auto at = begin - state.range.begin;
    const ops::AdamWSettings settings{.lr = rate(tensor.role) * rate_factor,
                                      .beta1 = options_.beta1,
                                      .beta2 = options_.beta2,
                                      .eps = options_.eps,
                                      .weight_decay = tensor.is_matrix() ? options_.weight_decay : 0.0,
                                      .step = step,
                                      .gradient_scale = gradient_scale};
    ops::adamw_(part(p, at, count), part(g, at, count), part(state.m, at, count), part(state.v, at, count),
                part(fused_copy, at, count), settings);
  }
  if (by_rule) rule_->make_copy(unit, p, copy);
}

}  // namespace retort::optim
