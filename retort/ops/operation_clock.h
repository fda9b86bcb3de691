#pragma once
// Where the time of a training step goes, by operation.  Every operation of ops/ notes itself while a clock
// lives on its thread; where none does, that costs the look at one pointer.  On an accelerator work is
// queued, so there the times say when it was queued.

#include <array>
#include <cstddef>

#include "retort/base/machine.h"
#include "retort/base/words.h"

namespace retort::ops {

enum class Operation {
  product,        ///< of matrices: linear layers, the head, their gradients and the sums of those
  attention,      ///< scores, softmax and weighted values
  norm,           ///< RMSNorm, with the residual where it is added
  rotary,         ///< positions into queries and keys
  swiglu,         ///< the gate of an MLP
  hidden_losses,  ///< losses on hidden states
  logit_losses,   ///< losses on logits
  optimizer       ///< gradient norm and update
};
constexpr auto words_of(Operation) {
  return base::words<Operation::optimizer>("product", "attention", "norm", "rotary", "swiglu",
                                           "hidden_losses", "logit_losses", "optimizer");
}
inline constexpr std::size_t kOperations = 8;
using PerOperation = std::array<double, kOperations>;

/// Counts, while it lives, the seconds of each operation that its thread carries out.  A second clock on the
/// same thread takes its place until it dies.
class OperationClock {
 public:
  OperationClock();
  ~OperationClock();
  OperationClock(const OperationClock&) = delete;
  OperationClock& operator=(const OperationClock&) = delete;

  /// The seconds since the last call.
  PerOperation take();

 private:
  friend class InOperation;
  OperationClock* before_;
  bool busy_ = false;
  PerOperation seconds_ = {};
};

/// In an operation for the time of a scope.  An operation within another counts as the outer one.
class InOperation {
 public:
  explicit InOperation(Operation operation);
  ~InOperation();
  InOperation(const InOperation&) = delete;
  InOperation& operator=(const InOperation&) = delete;

 private:
  OperationClock* clock_;
  Operation operation_;
  double since_ = 0;
};

}  // namespace retort::ops
