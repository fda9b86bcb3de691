#pragma once
// A call whose buffers lie on an accelerator, as the processor can carry it out: with copies of them.

#include <cstddef>
#include <vector>

#include "retort/comm/accelerator.h"
#include "retort/comm/group.h"

namespace retort::comm {

/// Whether anything of the call lies on an accelerator.
bool on_accelerator(const Collective& call);

class StagedCall {
 public:
  /// Copies what the call takes; throws InternalError where it lies on an accelerator and there is none.
  /// Buffers of the processor stay as they are.  The arguments outlive the object.
  StagedCall(const Collective& call, Accelerator* accelerator);
  const Collective& call() const { return staged_; }
  /// Copies the result to its place.
  void finish() const;

 private:
  const Collective& original_;
  Accelerator* accelerator_;
  Collective staged_;
  std::vector<std::byte> from_, to_;
};

}  // namespace retort::comm
