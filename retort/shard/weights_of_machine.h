#pragma once
// A model that is only read.

#include "retort/comm/group.h"
#include "retort/model/weights.h"

namespace retort::shard {

/// The ranks of a machine hold one copy between them where they have memory in common, of which each reads a
/// part from the file; else every rank holds its own.  Nobody may change the values.  Collective.  Throws
/// what the source throws.
model::Weights weights_of_machine(const model::UnitSource& source, at::ScalarType dtype, at::Device device,
                                  comm::Group& group);

}  // namespace retort::shard
