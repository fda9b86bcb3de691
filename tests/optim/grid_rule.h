#pragma once
// A rule that the library does not have: models compute with values of a grid, and what moves are others.

#include <ATen/ATen.h>

#include "retort/optim/weight_rule.h"

namespace retort::test {

/// The nearest multiple of `spacing`; gradients pass as they are.
class GridRule final : public optim::WeightRule {
 public:
  explicit GridRule(double spacing) : spacing_(spacing) {}

  optim::RuleNeeds needs() const override { return {.own_copies = true}; }
  void project_gradient(std::int64_t, const at::Tensor&) const override {}
  void make_copy(std::int64_t, const at::Tensor& p, const at::Tensor& copy) const override {
    copy.copy_(on_grid(p));
  }
  at::Tensor on_grid(const at::Tensor& p) const { return (p / spacing_).round() * spacing_; }

 private:
  double spacing_;
};

}  // namespace retort::test
