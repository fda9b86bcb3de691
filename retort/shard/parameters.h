#pragma once
// A model's parameters as the engine sees them: units that are acquired, released and reduced, and nothing
// else. How they are spread over a group is this interface's secret; in a group of one the three calls are
// the identity.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "retort/comm/group.h"
#include "retort/model/weights.h"
#include "retort/optim/adamw.h"

namespace retort::shard {

class Parameters {
 public:
  virtual ~Parameters() = default;
  virtual const architecture::Config& config() const = 0;
  virtual const architecture::Layout& layout() const = 0;

  /// The whole unit, flat, in the compute type; valid until release.  Collective.
  virtual at::Tensor acquire(std::int64_t unit) = 0;
  virtual void release(std::int64_t unit) = 0;
  /// A unit stays in memory between acquire and the next acquire, so that what was computed from it may be
  /// kept.
  virtual bool resident() const = 0;

  /// Flat float32 buffer (float64 when the compute type is) to which the gradient of the whole unit is added.
  virtual at::Tensor gradient(std::int64_t unit) = 0;
  /// The gradient of the unit is complete on this rank: sums it over the group.  Collective.
  virtual void reduce(std::int64_t unit) = 0;
  virtual void zero_gradients() = 0;

  /// This rank's part of the unit, and float32 master weights, reduced gradient and compute copy (undefined
  /// when the master is the compute copy) of that part.
  virtual optim::UnitRange range(std::int64_t unit) const = 0;
  virtual at::Tensor master(std::int64_t unit) = 0;
  virtual at::Tensor own_gradient(std::int64_t unit) = 0;
  virtual at::Tensor compute_copy(std::int64_t unit) = 0;

  /// The master weights of the whole model, for saving.  Collective.
  virtual model::Weights gathered() = 0;
};

enum class Use { frozen, trained };

/// Everything on this rank.  frozen: weights in their own type, no gradients.  trained: `weights` holds the
/// master values; compute copies are made when `compute` is another type.
std::unique_ptr<Parameters> resident_parameters(model::Weights weights, Use use, at::ScalarType compute);

}  // namespace retort::shard
