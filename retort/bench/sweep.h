#pragma once
// How the rate of a model's products depends on its sizes, and which sizes run well.  A kernel works on
// tiles; a width that its tiles do not divide costs as much as the next one that they do.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/bench/in_turn.h"
#include "retort/bench/products.h"

namespace retort::bench {

/// A rate at one value of a size.
struct ValueRate {
  std::int64_t value = 0;
  double flops_per_second = 0;
};

/// The mean rate of widths that `multiple`, a power of two, divides and twice as much does not.
struct MultipleRate {
  std::int64_t multiple = 1;
  double flops_per_second = 0;
  std::vector<std::int64_t> widths;
};

/// What a width may lose and still run well: less is not told from the noise of a shared machine.
inline constexpr double kLoss = 0.05;

struct Sweep {
  std::int64_t center = 0;              ///< the model's own width
  std::vector<MultipleRate> multiples;  ///< 1, 2, 4, ...

  /// The mean rate of widths that `multiple` divides, of which each second one is divided by more than that.
  double rate_of(std::int64_t multiple) const;
  /// The same as a share of the best of all multiples; 1 for a sweep of nothing.
  double share_of(std::int64_t multiple) const;
  /// The mean rate of the widths that as large a power of two divides as this one; 0 for a sweep of nothing,
  /// or no width.
  double rate_at(std::int64_t width) const;
  /// The smallest multiple whose widths lose less than kLoss of the best; 1 for a sweep of nothing.
  std::int64_t advised_multiple() const;
};

/// 1, 2, 4, ... up to a quarter of the width, at most 256.
std::vector<std::int64_t> multiples_of_sweep(std::int64_t center);

/// Up to four odd multiples of `multiple` on both sides of `center`, evenly within a quarter of it, so that
/// the trend of the rate with the width itself cancels out.
std::vector<std::int64_t> widths_of_sweep(std::int64_t center, std::int64_t multiple);

/// All passes of all `weights_of(width)` at the widths of a sweep.
struct SweepPlan {
  std::int64_t center = 0, tokens = 0;
  std::function<std::vector<Linear>(std::int64_t width)> weights_of;

  double flops_per_round() const;
  std::int64_t bytes(std::int64_t item_bytes) const;
};

/// gate_up and down of the model's widest MLP at other widths.
SweepPlan mlp_width_sweep(const architecture::Config& config, std::int64_t tokens);
/// The products of its widest block at other hidden sizes.
SweepPlan hidden_size_sweep(const architecture::Config& config, std::int64_t tokens);

Sweep measure(const SweepPlan& plan, at::ScalarType dtype, at::Device device, const Effort& effort,
              const std::function<void(double share)>& done);

/// qkv and o with one KV group up to all of the model's attention with most of them (16 counts at most);
/// empty for a model without attention.
std::vector<ValueRate> measure_kv_groups(const architecture::Config& config, std::int64_t tokens,
                                         at::ScalarType dtype, at::Device device, const Effort& effort,
                                         const std::function<void(double share)>& done);

/// Attention over one sequence, forward and backward, with heads of 32 to 128 features that are together as
/// wide as the model's queries, as nearly as its KV groups allow.
std::vector<ValueRate> measure_head_dims(const architecture::Config& config, std::int64_t tokens,
                                         at::ScalarType dtype, at::Device device, const Effort& effort,
                                         const std::function<void(double share)>& done);

}  // namespace retort::bench
