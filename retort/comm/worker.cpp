#include "retort/comm/worker.h"

#include "retort/base/machine.h"

namespace retort::comm {

struct Worker::Task final : Pending {
  void wait() override {
    const double start = base::monotonic_seconds();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended; });
    if (waited) waited(base::monotonic_seconds() - start);
    if (error) std::rethrow_exception(error);
  }
  void end(std::exception_ptr with) {
    {
      const std::scoped_lock lock(mutex);
      ended = true;
      error = std::move(with);
    }
    changed.notify_all();
  }

  std::function<void()> act;
  std::function<void(double)> waited;
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  std::exception_ptr error;
};

Worker::~Worker() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Handle Worker::post(std::function<void()> act, std::function<void(double)> waited) {
  auto task = std::make_shared<Task>();
  task->act = std::move(act);
  task->waited = std::move(waited);
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(task);
  }
  changed_.notify_all();
  return Handle(task);
}

void Worker::drain() noexcept try {
  post([] {}).wait();
} catch (...) {  // what failed was thrown where it was waited for
}

void Worker::work() {
  for (;;) {
    std::shared_ptr<Task> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    if (!failed_) try {
        task->act();
      } catch (...) {
        failed_ = std::current_exception();
      }
    task->end(failed_);
  }
}

}  // namespace retort::comm
