#include "retort/comm/watchdog.h"

#include <chrono>
#include <cstdlib>

#include "retort/base/error.h"

namespace retort::comm {

double least_patience_seconds() {
  const char* const text = std::getenv("RETORT_PATIENCE_SECONDS");
  return text ? std::atof(text) : 30;
}

Watchdog::Watchdog(std::function<double()> patience,
                   std::function<void(const std::string& call, double seconds)> end)
    : patience_(std::move(patience)),
      end_(std::move(end)),
      thread_([this](const std::stop_token& stop) { look(stop); }) {}

void Watchdog::begin(const CallId& call, const std::string& level, double times) {
  const std::scoped_lock lock(mutex_);
  waited_.emplace();
  call_ = call;
  level_ = level;
  times_ = times;
}

void Watchdog::end() {
  const std::scoped_lock lock(mutex_);
  waited_.reset();
}

void Watchdog::look(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::scoped_lock lock(mutex_);
    const double patience = patience_() * times_, taken = waited_ ? waited_->seconds() : 0;
    if (!waited_ || patience <= 0 || taken < patience) continue;
    end_(base::join(described(call_), " of '", level_, "'"), taken);
    return;
  }
}

}  // namespace retort::comm
