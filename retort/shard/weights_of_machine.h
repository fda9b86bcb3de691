#pragma once
// A model of which the ranks of a machine hold one copy between them.

#include "retort/comm/group.h"
#include "retort/model/weights.h"

namespace retort::shard {

struct MachineWeights {
  model::Weights weights;
  /// Whether a change of the values is this rank's to write: the copy is its own, or it is the one of its
  /// machine that writes the copy of all.
  bool writes = true;
};

/// The ranks of a machine hold one copy between them where they have memory in common, of which each reads a
/// part from the file; else every rank holds its own.  Collective.  Throws what the source throws.
MachineWeights weights_of_machine(const model::UnitSource& source, at::ScalarType dtype, at::Device device,
                                  comm::Group& group);

}  // namespace retort::shard
