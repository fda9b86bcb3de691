#pragma once
// Where the time of a training step goes.  A reading of the clock takes some fifty nanoseconds, a step has a
// few hundred.  On an accelerator work is queued, so there a clock says when it was queued, and marks say
// when it was done.

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "retort/base/machine.h"
#include "retort/base/words.h"
#include "retort/comm/accelerator.h"
#include "retort/comm/group.h"

namespace retort::shard {

enum class Phase {
  data,             ///< waiting for sequences, and packing them
  writing,          ///< the student writes texts that it learns from
  student_forward,  ///< embedding and blocks
  teacher_forward,  ///< embedding and blocks
  hidden_losses,    ///< losses on hidden states, with their gradients
  head,             ///< logits of student and teacher, losses on them, and their gradients
  backward,         ///< of the student's blocks and embedding, with what is computed again
  checkpoint,       ///< waiting for what is not yet written of the last one
  exchange,         ///< waiting for weights and gradients of other ranks
  update            ///< gradient norm, clipping, optimizer
};
constexpr auto words_of(Phase) {
  return base::words<Phase::update>("data", "writing", "student_forward", "teacher_forward", "hidden_losses",
                                    "head", "backward", "checkpoint", "exchange", "update");
}
inline constexpr std::size_t kPhases = 10;
using PerPhase = std::array<double, kPhases>;

/// Counts the seconds of the phase that it is in.
class PhaseClock {
 public:
  /// Ends one phase and begins another; the former is returned.
  Phase enter(Phase phase) {
    const double now = base::monotonic_seconds();
    seconds_[static_cast<std::size_t>(phase_)] += now - since_;
    since_ = now;
    const Phase before = phase_;
    phase_ = phase;
    if (told_) told_(phase);
    return before;
  }
  /// Calls `told` with each phase that begins from now on.
  void tell(std::function<void(Phase)> told) { told_ = std::move(told); }
  /// The seconds of all phases since the last call; the present one goes on.
  PerPhase take() {
    enter(phase_);
    const PerPhase taken = seconds_;
    seconds_ = {};
    return taken;
  }

 private:
  PerPhase seconds_ = {};
  Phase phase_ = Phase::data;
  double since_ = base::monotonic_seconds();
  std::function<void(Phase)> told_;
};

/// Counts the seconds of phases in an accelerator's computation.
class DevicePhases {
 public:
  explicit DevicePhases(std::shared_ptr<comm::Accelerator> accelerator)
      : accelerator_(std::move(accelerator)) {}

  /// What the computation is given from now on belongs to the phase.
  void enter(Phase phase) { begins_.push_back({phase, accelerator_->mark(comm::Stream::computation)}); }
  /// The seconds of all phases whose end the computation has reached since the last call.  Waits for nothing.
  PerPhase take() {
    PerPhase seconds = {};
    std::size_t next = 1;
    for (; next < begins_.size() && begins_[next].mark->reached(); ++next)
      seconds[static_cast<std::size_t>(begins_[next - 1].phase)] +=
          begins_[next].mark->seconds_since(*begins_[next - 1].mark);
    if (!begins_.empty())
      begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(next - 1));
    return seconds;
  }

 private:
  struct Begin {
    Phase phase;
    std::shared_ptr<comm::Mark> mark;
  };
  std::shared_ptr<comm::Accelerator> accelerator_;
  std::vector<Begin> begins_;
};

/// In a phase for the time of a scope.  What an exception ends stays the phase, so that it can be told.
class InPhase {
 public:
  InPhase(PhaseClock& clock, Phase phase) : clock_(clock), before_(clock.enter(phase)) {}
  ~InPhase() {
    if (std::uncaught_exceptions() == exceptions_) clock_.enter(before_);
  }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  PhaseClock& clock_;
  Phase before_;
  int exceptions_ = std::uncaught_exceptions();
};

/// In the phase of waiting for other ranks for the time of a scope, where there are some.
class Waiting {
 public:
  Waiting(PhaseClock& clock, const comm::Group& group) {
    if (group.size() > 1) phase_.emplace(clock, Phase::exchange);
  }

 private:
  std::optional<InPhase> phase_;
};

}  // namespace retort::shard
