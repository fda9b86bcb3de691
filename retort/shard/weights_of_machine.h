#pragma once
// A model of which the ranks of a machine hold one copy between them.

#include <memory>

#include "retort/comm/group.h"
#include "retort/model/weights.h"
#include "retort/shard/groups.h"
#include "retort/shard/parameters.h"

namespace retort::shard {

struct MachineWeights {
  model::Weights weights;
  /// Whether a change of the values is this rank's to write: the copy is its own, or it is the one of its
  /// machine that writes the copy of all.
  bool writes = true;
};

/// The ranks of a machine hold one copy between them where they have memory in common, of which each reads a
/// part from the file; else every rank holds its own.  Where something computes on another device than the
/// one that they lie on, it does so with copies.  Collective.  Throws what the source throws.
MachineWeights weights_of_machine(const model::UnitSource& source, at::ScalarType dtype, at::Device lies_on,
                                  at::Device computes_on, comm::Group& group);

/// Parameters, and the groups that they may lie over.
struct ReadOnlyModel {
  Groups groups;
  std::unique_ptr<Parameters> parameters;
};

/// A model that is read unit by unit and never changed.  Where units are gathered, all ranks acquire the same
/// ones in the same order.  Collective.  Throws what the source throws.
ReadOnlyModel read_only_model(const model::UnitSource& source, at::ScalarType dtype, at::Device device,
                              comm::Group& group);

/// How ranks hold such a model.
struct ReadOnlyLayout {
  std::int64_t ranks = 1;  ///< that hold one copy between them
  bool gathers = false;    ///< each has a part: they have no memory in common, as with an accelerator each
};
/// Where machines have unequal numbers of ranks without common memory, each rank holds a copy.
ReadOnlyLayout read_only_layout(const RankCounts& ranks);

}  // namespace retort::shard
