#pragma once
// The groups over which one model lies.
//
// Ranks of a shard group hold one copy of the compute weights between them.  The ranks with the same place in
// the other shard groups are its replicas.  Master weights, gradients and moments lie over all ranks.

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "retort/comm/group.h"

namespace retort::shard {

struct Groups {
  comm::Group* world = nullptr;
  std::unique_ptr<comm::Group> shard, replica;
  /// Whether weights and gradients move while something computes; false is for comparison.
  bool ahead = true;
};

/// How many ranks there are.
struct RankCounts {
  std::int64_t all = 1;
  std::int64_t of_machine = 1;  ///< of the machine with most
  std::int64_t least_of_machine = 1;
  std::int64_t of_memory = 1;  ///< that share one memory: those of a machine, or 1 with an accelerator each
  std::int64_t of_common_memory = 1;   ///< of these, that hold one copy between them; 1: each its own
  std::int64_t copies_of_machine = 1;  ///< of what lies in its memory for its ranks: one, or each has its own
};
/// Of ranks that compute on such devices.  Collective.
RankCounts count_ranks(comm::Group& world, at::Device device);

/// Ranks of a shard group where `asked` are wanted; 0: those of each machine, below 0: all.  A rank alone has
/// a group of one. Throws UsageError when the ranks do not divide, or machines have unequal numbers of them.
std::int64_t shard_size(const RankCounts& ranks, std::int64_t asked);

/// Shard groups of shard_size(`ranks_per_shard`) neighbours; throws what it throws.  Collective.
Groups make_groups(comm::Group& world, std::int64_t ranks_per_shard);

}  // namespace retort::shard
