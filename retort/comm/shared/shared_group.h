#pragma once
// A group of ranks that see common memory: processes of one machine, or threads of one process.  What lies in
// common blocks is read in place; all else goes through a part of the arena that the group keeps.

#include <memory>
#include <vector>

#include "retort/comm/group.h"
#include "retort/comm/shared/arena.h"
#include "retort/comm/worker.h"

namespace retort::comm {

/// What the first group of a machine is made of; the same on every rank but for `rank`.
struct SharedWorld {
  std::shared_ptr<Arena> arena;
  std::int64_t control = 0;  ///< offset of what control_bytes() says, taken by one rank for all
  int rank = 0, size = 1;
  bool processes = false;     ///< each rank is a process, which the others miss when it dies
  bool common_blocks = true;  ///< false: the group has none, like one of several machines
};

/// What a group of `size` ranks keeps in the arena, bytes.
std::int64_t control_bytes(int size);

/// The group that holds all ranks of a machine.  Its collectives run on a thread of their own.
std::unique_ptr<Group> shared_group(const SharedWorld& world);

/// As above, of a job and on a thread that other groups of this process have too.  `members`: where each rank
/// stands among those of the machine.  Those joined the arena before.
std::unique_ptr<Group> shared_group(const SharedWorld& world, std::shared_ptr<Job> job,
                                    std::shared_ptr<Worker> worker, std::vector<int> members,
                                    const std::string& level);

}  // namespace retort::comm
