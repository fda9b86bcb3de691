#pragma once
// Misses the rank after this one, whatever both are at, where their machines have no memory in common: the
// record of a process that hangs as a whole, or whose machine is gone, does not change any more.

#include <functional>
#include <memory>
#include <thread>

#include "retort/comm/flight.h"

namespace retort::comm {

class NeighbourWatch {
 public:
  /// `own` is flushed, so that other machines see it.  `end` is told once, on the watch's thread, for how
  /// many seconds the record of rank `neighbour` has not changed: at least `patience_seconds`, in which this
  /// process looked several times.  A record that never changed is one of an earlier job.
  NeighbourWatch(std::weak_ptr<Flight> own, int neighbour, double patience_seconds,
                 std::function<void(double seconds)> end);

 private:
  void look(const std::stop_token& stop);

  std::weak_ptr<Flight> own_;
  std::filesystem::path file_;
  double patience_seconds_;
  std::function<void(double)> end_;
  std::jthread thread_;
};

}  // namespace retort::comm
