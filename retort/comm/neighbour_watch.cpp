#include "retort/comm/neighbour_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/machine.h"

namespace retort::comm {
namespace {

constexpr int kLooks = 6;  // within the patience

// When the record was last alive; nothing where the rank has ended, or has none.
std::optional<std::int64_t> alive_of(const std::filesystem::path& file) {
  try {
    const auto record = read_flight(file);
    if (record && record->state == RankState::running) return record->alive_ns;
  } catch (const base::Error&) {  // not there yet
  }
  return {};
}

// Since when a value has not changed, and how often that was seen.
class Unchanged {
 public:
  void see(const std::optional<std::int64_t>& value) {
    if (value && value == value_) {
      ++times_;
      return;
    }
    changes_ = value ? changes_ + (value_ ? 1 : 0) : 0;
    value_ = value;
    since_ = base::monotonic_seconds();
    times_ = 0;
  }
  bool for_long(double seconds) const {
    return changes_ > 0 && times_ >= kLooks && this->seconds() >= seconds;
  }
  double seconds() const { return base::monotonic_seconds() - since_; }

 private:
  std::optional<std::int64_t> value_;
  double since_ = 0;
  int changes_ = 0, times_ = 0;
};

}  // namespace

NeighbourWatch::NeighbourWatch(std::weak_ptr<Flight> own, int neighbour, double patience_seconds,
                               std::function<void(double)> end)
    : own_(std::move(own)), patience_seconds_(patience_seconds), end_(std::move(end)) {
  if (const auto flight = own_.lock()) file_ = flight_path(flight->directory(), neighbour);
  thread_ = std::jthread([this](const std::stop_token& stop) { look(stop); });
}

void NeighbourWatch::look(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any woken;
  Unchanged alive;
  while (!stop.stop_requested()) {
    woken.wait_for(lock, stop, std::chrono::duration<double>(patience_seconds_ / kLooks),
                   [] { return false; });
    const auto flight = own_.lock();
    if (!flight || stop.stop_requested()) return;
    flight->flush();
    alive.see(alive_of(file_));
    if (!alive.for_long(patience_seconds_)) continue;
    end_(alive.seconds());
    return;
  }
}

}  // namespace retort::comm
