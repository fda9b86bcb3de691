#include "retort/ops/operation_clock.h"

#include <utility>

namespace retort::ops {
namespace {

thread_local OperationClock* current = nullptr;

}  // namespace

OperationClock::OperationClock() : before_(std::exchange(current, this)) {}

OperationClock::~OperationClock() {
  current = before_;
}

PerOperation OperationClock::take() {
  return std::exchange(seconds_, {});
}

InOperation::InOperation(Operation operation)
    : clock_(current && !current->busy_ ? current : nullptr), operation_(operation) {
  if (!clock_) return;
  clock_->busy_ = true;
  since_ = base::monotonic_seconds();
}

InOperation::~InOperation() {
  if (!clock_) return;
  clock_->seconds_[static_cast<std::size_t>(operation_)] += base::monotonic_seconds() - since_;
  clock_->busy_ = false;
}

}  // namespace retort::ops
