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
             at::Device device)
    : layout_(layout), options_(options) {
  const auto flat = at::TensorOptions().dtype(at::kFloat).device(device);
  for (const auto& range : ranges)
    units_.push_back({range, at::zeros({range.count}, flat), at::zeros({range.count}, flat), {}});
}

double AdamW::rate(architecture::Role role) const {
  const bool table = role == architecture::Role::embedding || role == architecture::Role::head;
  return table && options_.embedding_lr >= 0 ? options_.embedding_lr : options_.lr;
}

void AdamW::mask_gradient(std::int64_t unit, const at::Tensor& g) const {
  const auto& mask = units_[static_cast<std::size_t>(unit)].mask;
  if (!mask.defined()) return;
  constexpr std::int64_t kPiece = 1 << 20;  // so that the memory plan need not know of what it allocates
  for (std::int64_t begin = 0; begin < g.numel(); begin += kPiece) {
    const auto count = std::min(kPiece, g.numel() - begin);
    part(g, begin, count).masked_fill_(part(mask, begin, count).eq(0), 0);
  }
}

void AdamW::update(std::int64_t unit, const at::Tensor& p, const at::Tensor& g, const at::Tensor& copy,
                   std::int64_t step, double rate_factor, double gradient_scale) {
  base::ensure(options_.lr > 0, "a learning rate is chosen before training");
  auto& state = units_[static_cast<std::size_t>(unit)];
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
                part(copy, at, count), part(state.mask, at, count), settings);
  }
}

}  // namespace retort::optim
