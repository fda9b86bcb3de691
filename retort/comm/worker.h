#pragma once
// The thread that carries out the collectives of a process, one after the other, while its caller computes.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "retort/comm/group.h"

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

 private:
  struct Task;
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  std::exception_ptr failed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace retort::comm
