#pragma once
// Pruning keeps no state between runs: asked to stop, it ends at once and begins anew next time.

#include "retort/base/error.h"
#include "retort/record/observer.h"

namespace retort::prune {

using StoppedError = base::ErrorOf<base::ExitCode::stopped>;

/// Throws StoppedError when the user asked to stop.
inline void stop_if_asked(const record::Observer& observer, const char* who) {
  base::require<StoppedError>(
      !observer.stop_requested(), who,
      ": stopped on request; nothing of this stage is kept, the same command again begins it anew.");
}

}  // namespace retort::prune
