#pragma once
// A model's parameters as the engine sees them: units that are acquired, released and reduced, and nothing
// else. How they are spread over a group is this interface's secret; in a group of one nothing is moved.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "retort/comm/group.h"
#include "retort/model/weights.h"
#include "retort/optim/adamw.h"
#include "retort/shard/groups.h"

namespace retort::shard {

class Parameters {
 public:
  virtual ~Parameters() = default;
  virtual const architecture::Config& config() const = 0;
  virtual const architecture::Layout& layout() const = 0;

  /// The unit is acquired soon, so what that takes may begin.  Collective.
  virtual void prefetch(std::int64_t unit) = 0;
  /// Something else computes now, so new weights that are on their way may move on.  Collective.
  virtual void advance() {}
  /// The whole unit, flat, in the compute type; valid until release.  Collective.
  virtual at::Tensor acquire(std::int64_t unit) = 0;
  virtual void release(std::int64_t unit) = 0;
  /// A unit stays in memory between acquire and the next acquire, so that views of it may be kept.
  virtual bool resident() const = 0;

  /// Flat float32 buffer (float64 when the compute type is) to which the gradient of the whole unit is added;
  /// zero when it is first asked for after zero_gradients() or reduce().
  virtual at::Tensor gradient(std::int64_t unit) = 0;
  /// What was added on this rank goes, summed over the group, into own_gradient().  `last`: nothing more is
  /// added to this unit before finish_reduces(), so its sum over other shard groups may begin.  Collective.
  virtual void reduce(std::int64_t unit, bool last) = 0;
  /// Returns when all that was reduced is in own_gradient().  Collective.
  virtual void finish_reduces() = 0;
  /// own_gradient() begins at zero.
  virtual void zero_gradients() = 0;

  /// This rank's part of the unit, and float32 master weights, reduced gradient and compute copy (undefined
  /// when the master is the compute copy) of that part.
  virtual optim::UnitRange range(std::int64_t unit) const = 0;
  virtual at::Tensor master(std::int64_t unit) = 0;
  virtual at::Tensor own_gradient(std::int64_t unit) = 0;
  virtual at::Tensor compute_copy(std::int64_t unit) = 0;
  /// Master and compute copy of this rank's part are new: every rank is to acquire them.  Collective.
  virtual void updated(std::int64_t unit) = 0;

  /// Throws PeerError on all ranks, naming one, where replicas of the model hold other compute weights: a
  /// fault of memory or of the network.  Reads all of them.  Collective.
  virtual void check_replicas() {}

  /// Master weights of the whole unit.  Collective.
  virtual at::Tensor whole_master(std::int64_t unit) = 0;
};

enum class Use { frozen, trained };

/// Everything on this rank.  frozen: weights in their own type, no gradients.  trained: `weights` holds the
/// master values; compute copies are made when `compute` is another type.
std::unique_ptr<Parameters> resident_parameters(model::Weights weights, Use use, at::ScalarType compute);

/// A model that is spread over a group, read from `source` unit by unit.  Collective.
std::unique_ptr<Parameters> sharded_parameters(const model::UnitSource& source, Use use,
                                               at::ScalarType compute, at::Device device,
                                               const Groups& groups);

}  // namespace retort::shard
