#pragma once
// Misses ranks that do not come, where a call that waits for them cannot be interrupted: it ends the process.

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "retort/comm/call.h"
#include "retort/comm/waited.h"

namespace retort::comm {

/// Seconds after which a rank may be missed at all: 30, or RETORT_PATIENCE_SECONDS.
double least_patience_seconds();

class Watchdog {
 public:
  /// `patience`: seconds that a call may take now; 0: without end.  `end` is told of the first that takes
  /// longer, on the watchdog's thread, with the seconds that it took.
  Watchdog(std::function<double()> patience,
           std::function<void(const std::string& call, double seconds)> end);

  /// A call of this process begins: what it is, and the name of its group.
  /// `times`: how many times longer than `patience` it may take.
  void begin(const CallId& call, const std::string& level, double times);
  /// It has ended.
  void end();

 private:
  void look(const std::stop_token& stop);

  std::function<double()> patience_;
  std::function<void(const std::string&, double)> end_;
  std::mutex mutex_;
  std::optional<Waited> waited_;  // of the call at hand
  double times_ = 1;
  CallId call_;
  std::string level_;
  std::jthread thread_;
};

}  // namespace retort::comm
