#pragma once
// Writes while the caller computes: one thread, a queue of few jobs, errors where they can be handled.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace retort::io {

class BackgroundWriter {
 public:
  using Job = std::function<void()>;

  /// At most `capacity` jobs wait; a job holds what it writes, so this bounds the memory.
  explicit BackgroundWriter(std::size_t capacity);
  /// Leaves out the jobs that still wait, lets the one at work end, and loses its error: call wait() before.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Adds a job, once there is room; jobs run in this order.  Returns its number.  Throws what an earlier job
  /// threw; after that no job runs.
  std::int64_t push(Job job);
  /// Returns once job `number` and all before it are done.  Throws what a job threw.
  void wait(std::int64_t number);
  /// The same for all jobs.
  void wait();

 private:
  void work();
  void wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready);

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::int64_t pushed_ = 0, done_ = 0;
  std::exception_ptr error_;
  bool closed_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace retort::io
