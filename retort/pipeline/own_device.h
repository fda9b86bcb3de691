#pragma once
// Which device a rank computes on.

#include <c10/core/Device.h>

#include "retort/comm/group.h"

namespace retort::pipeline {

struct OwnDevice {
  at::Device device;
  int ranks = 1;  ///< that compute on it
};

/// The device of this rank where the recipe names `device`, and what moves bytes between those of the group.
/// Collective.  Each rank of a machine takes an accelerator of its own: by its number among the ranks there,
/// or the only one that its launcher lets it see.  RETORT_SHARE_ACCELERATORS lets ranks share them, to try
/// several ranks on one.  Throws base::UsageError where the recipe names one accelerator for several ranks,
/// base::EnvironmentError where they are too few or no library moves their bytes.
OwnDevice own_device(at::Device device, comm::Group& group);

}  // namespace retort::pipeline
