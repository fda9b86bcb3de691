#pragma once
// A group of ranks of several machines.  Sums are added here, in the order of ranks, so that they have the
// same bits with every MPI library; MPI moves bytes.

#include <memory>

#include "retort/comm/group.h"
#include "retort/comm/mpi/runtime.h"

namespace retort::comm {

/// The group of all ranks; where they share one machine it needs no MPI for what it does.
std::unique_ptr<Group> mpi_world(std::shared_ptr<MpiRuntime> runtime);

}  // namespace retort::comm
