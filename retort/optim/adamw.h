#pragma once
// AdamW over float32 ranges of a model's layout, with a learning rate of its own for embedding and head.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/architecture/layout.h"
#include "retort/optim/options.h"
#include "retort/optim/weight_rule.h"

namespace retort::optim {

/// What a rank holds of one unit: elements [begin, begin + count) of its flat layout.
struct UnitRange {
  std::int64_t begin = 0, count = 0;
};

/// The state of a range; all tensors have `count` elements.
struct UnitState {
  UnitRange range;
  at::Tensor m, v;  ///< float32 moments
};

class AdamW {
 public:
  /// ranges[u] is this rank's part of unit u.  `rule` outlives it; null: weights take any value.
  AdamW(const architecture::Layout& layout, const std::vector<UnitRange>& ranges, OptimOptions options,
        at::Device device, const WeightRule* rule = nullptr);

  std::vector<UnitState>& units() { return units_; }
  const OptimOptions& options() const { return options_; }

  /// One step on unit `unit`: parameters p and gradient g (float32, this rank's range), which the rule has
  /// projected; copy in bfloat16 or undefined.  `step` counts from 1; `rate_factor` multiplies every learning
  /// rate, `gradient_scale` the gradient.
  void update(std::int64_t unit, const at::Tensor& p, const at::Tensor& g, const at::Tensor& copy,
              std::int64_t step, double rate_factor, double gradient_scale);

 private:
  double rate(architecture::Role role) const;

  const architecture::Layout& layout_;
  OptimOptions options_;
  const WeightRule* rule_;
  std::vector<UnitState> units_;
};

}  // namespace retort::optim
