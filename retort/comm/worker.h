#pragma once
// The thread that carries out the collectives of a process, one after the other, while its caller computes.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "retort/comm/accelerator.h"
#include "retort/comm/group.h"
#include "retort/comm/nccl/exchange.h"

namespace retort::comm {

class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  /// Ends what was posted.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Carries out `task` after all that was posted before.  Once a task throws, later ones end with the same
  /// error: after it the ranks are no longer at the same call.  `waited` is told the seconds that the caller
  /// waited.
  Handle post(std::function<void()> task, std::function<void(double)> waited = {});
  /// Returns when all that was posted has ended, well or not.
  void drain() noexcept;

  /// Where the calls of this process are noted, and how long one waits for other ranks; 0: without end.
  void record(std::shared_ptr<Flight> flight) { flight_ = std::move(flight); }
  const std::shared_ptr<Flight>& flight() const { return flight_; }
  void set_patience(double seconds) { patience_seconds_ = seconds; }
  double patience_seconds() const { return patience_seconds_; }
  /// Where buffers of an accelerator are copied, and, unless `exchange` is null, move by themselves.  Called
  /// before anything is posted that needs it.
  void set_accelerator(std::shared_ptr<Accelerator> accelerator, std::shared_ptr<nccl::Exchange> exchange) {
    accelerator_ = std::move(accelerator);
    exchange_ = std::move(exchange);
  }
  Accelerator* accelerator() const { return accelerator_.get(); }
  nccl::Exchange* exchange() const { return exchange_.get(); }

 private:
  struct Task;
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  std::exception_ptr failed_;
  bool stopping_ = false;
  std::shared_ptr<Flight> flight_;
  std::atomic<double> patience_seconds_ = 0;
  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<nccl::Exchange> exchange_;
  std::thread thread_;
};

}  // namespace retort::comm
