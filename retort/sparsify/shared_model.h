#pragma once
// The model that a stage makes sparse, as the ranks of a group hold it: those of a machine may have one copy.

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>

#include "retort/architecture/layout.h"
#include "retort/comm/group.h"
#include "retort/comm/share.h"
#include "retort/model/weights.h"

namespace retort::sparsify {

class SharedModel {
 public:
  /// Changes the values of `weights` themselves; `writes` is that of shard::MachineWeights.
  SharedModel(model::Weights weights, bool writes, comm::Group& group)
      : weights_(std::move(weights)), writes_(writes), group_(group) {}

  const model::Weights& weights() const { return weights_; }
  comm::Group& group() const { return group_; }

  /// Runs `act` on every copy once no rank reads it any more, and returns when all see the result.
  /// Collective.
  void change(const std::function<void(model::Weights&)>& act);
  /// A copy of a unit to put back, on the ranks that write.
  at::Tensor copy_to_write(std::size_t unit) const;

  /// Rows of a layer that this rank works on; none where there are fewer than ranks.
  comm::Share own_rows(const architecture::Tensor& layer) const;
  /// The whole of what each rank has made of its rows.  Collective.
  at::Tensor gathered_rows(const architecture::Tensor& layer, const at::Tensor& own_RC) const;

  /// What became of it.
  model::Weights taken() && { return std::move(weights_); }

 private:
  model::Weights weights_;
  bool writes_;
  comm::Group& group_;
};

}  // namespace retort::sparsify
