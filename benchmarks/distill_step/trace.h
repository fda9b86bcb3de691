#pragma once
// What a rank did when: phases of its steps, collectives and waiting for them, in the format that browsers'
// trace viewers read (chrome://tracing, Perfetto).

#include <memory>
#include <mutex>
#include <string>

#include "retort/base/json.h"
#include "retort/base/machine.h"
#include "retort/comm/group.h"
#include "retort/shard/phases.h"

namespace retort {

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  explicit Trace(int rank) : rank_(rank), events_(base::Json::array()) {}

  /// The calls of a group from now on, which may outlive whoever made this.
  void watch(comm::Group& group) {
    group.log().watch([self = shared_from_this(), level = group.level()](const comm::TimedCall& call) {
      const auto what = std::string(base::word(call.op)) + " of " + level;
      if (call.waited)
        self->add("waits for " + what, "waiting", call.seconds, call.bytes);
      else
        self->add(what, "transfers", call.seconds, call.bytes);
    });
  }
  /// The phases of a clock, which this outlives.
  void watch(shard::PhaseClock& clock) {
    clock.tell([this](shard::Phase phase) {
      const double now = base::monotonic_seconds();
      if (since_ > 0) add(base::word(phase_), "computing", now - since_, 0);
      phase_ = phase;
      since_ = now;
    });
  }
  std::string text() const {
    const std::scoped_lock lock(mutex_);
    return events_.dump();
  }

 private:
  void add(std::string_view name, const char* row, double seconds, std::int64_t bytes) {
    const double end = base::monotonic_seconds();
    const std::scoped_lock lock(mutex_);
    events_.push_back({{"name", name},
                       {"ph", "X"},
                       {"pid", rank_},
                       {"tid", row},
                       {"ts", (end - seconds) * 1e6},
                       {"dur", seconds * 1e6},
                       {"args", {{"bytes", bytes}}}});
  }

  int rank_;
  mutable std::mutex mutex_;
  base::Json events_;
  shard::Phase phase_ = shard::Phase::data;
  double since_ = 0;
};

}  // namespace retort
