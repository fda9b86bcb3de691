#pragma once
// What holds weights to a form, such as 2:4 sparsity, while an optimizer moves them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace retort::optim {

/// What a rule takes, known before a model is loaded.
struct RuleNeeds {
  std::int64_t bytes_per_parameter = 0;  ///< beside the optimizer's moments
  bool own_copies = false;               ///< the model computes with copies that the rule makes
};

/// Of this rank's part of every unit of a model.
class WeightRule {
 public:
  virtual ~WeightRule() = default;
  virtual RuleNeeds needs() const = 0;
  /// Takes out of gradient g (float32) what no weight may follow, so that a norm counts what an update uses.
  virtual void project_gradient(std::int64_t unit, const at::Tensor& g) const = 0;
  /// Writes to `copy`, of the compute type, what the model computes with where its master weights are p
  /// (float32).  Asked for where the rule needs copies of its own.
  virtual void make_copy(std::int64_t unit, const at::Tensor& p, const at::Tensor& copy) const;
};

/// Keeps at zero what is zero: weights, and with them their moments, where a mask is 0.
class KeepZeros final : public WeightRule {
 public:
  static constexpr RuleNeeds kNeeds{.bytes_per_parameter = 1};

  /// masks[u] is uint8, of this rank's part of unit u, or undefined: then nothing of it is held.
  explicit KeepZeros(std::vector<at::Tensor> masks) : masks_(std::move(masks)) {}

  RuleNeeds needs() const override { return kNeeds; }
  void project_gradient(std::int64_t unit, const at::Tensor& g) const override;

 private:
  std::vector<at::Tensor> masks_;
};

}  // namespace retort::optim
