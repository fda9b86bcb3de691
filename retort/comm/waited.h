#pragma once
// How long a rank has waited for others while it could run itself.

#include <algorithm>
#include <optional>

#include "retort/base/machine.h"

namespace retort::comm {

/// Counts from its making on, and is read several times a second.  A job that a scheduler suspends stands
/// still as a whole, with nobody to blame: of a long gap between two readings half a second counts.
class Waited {
 public:
  /// Since when, in these seconds, a rank was seen that is stopped.  Ranks of a suspended job wake one after
  /// the other.
  std::optional<double> stopped_since;

  double seconds() {
    const double now = base::monotonic_seconds();
    seconds_ += std::min(now - last_, 0.5);
    last_ = now;
    return seconds_;
  }

 private:
  double last_ = base::monotonic_seconds(), seconds_ = 0;
};

}  // namespace retort::comm
