#include "retort/io/background_writer.h"

#include <algorithm>

namespace retort::io {

BackgroundWriter::BackgroundWriter(std::size_t capacity)
    : capacity_(std::max<std::size_t>(1, capacity)), thread_([this] { work(); }) {}

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

std::int64_t BackgroundWriter::push(Job job) {
  std::unique_lock lock(mutex_);
  wait_until(lock, [this] { return jobs_.size() < capacity_; });
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return ++pushed_;
}

void BackgroundWriter::wait(std::int64_t number) {
  std::unique_lock lock(mutex_);
  wait_until(lock, [this, number] { return done_ >= number; });
}

void BackgroundWriter::wait() {
  std::unique_lock lock(mutex_);
  wait_until(lock, [this] { return done_ == pushed_; });
}

void BackgroundWriter::wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready) {
  changed_.wait(lock, [&] { return error_ || ready(); });
  if (error_) std::rethrow_exception(error_);
}

void BackgroundWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || (!jobs_.empty() && !error_); });
    if (closed_) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      job();
      job = nullptr;  // what it holds is freed before it counts as done
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace retort::io
