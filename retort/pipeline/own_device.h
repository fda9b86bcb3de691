#pragma once
// Which device a rank computes on.

#include <c10/core/Device.h>

#include "retort/comm/group.h"

namespace retort::pipeline {

struct OwnDevice {
  at::Device device;
  int ranks = 1;  ///< of the machine, which compute on it
};

/// The device that this rank computes on where the recipe names `device`; sets what moves bytes between those
/// of the group.  Collective.  Each rank of a machine takes an accelerator of its own: by its number among
/// the ranks there, or the only one that its launcher lets it see.  RETORT_SHARE_ACCELERATORS lets ranks
/// share them.  Throws base::UsageError where several ranks of a machine would share the one that is named,
/// and base::EnvironmentError where a machine has fewer accelerators than ranks, or no library moves their
/// bytes.
OwnDevice own_device(at::Device device, comm::Group& group);

}  // namespace retort::pipeline
