#pragma once
// A call whose buffers lie on an accelerator, as the processor can carry it out: with copies of them.

#include <cstddef>
#include <vector>

#include "retort/comm/group.h"

namespace retort::comm {

class StagedCall {
 public:
  /// Copies what the call takes; throws InternalError where `memory` does not say how.  Buffers of the
  /// processor stay as they are.  Both arguments outlive the object.
  StagedCall(const Collective& call, const DeviceMemory& memory);
  const Collective& call() const { return staged_; }
  /// Copies the result to its place.
  void finish() const;

 private:
  const Collective& original_;
  const DeviceMemory& memory_;
  Collective staged_;
  std::vector<std::byte> from_, to_;
};

}  // namespace retort::comm
