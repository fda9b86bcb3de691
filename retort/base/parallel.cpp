#include "retort/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace retort::base {
namespace {

struct FirstError {
  std::mutex mutex;
  std::size_t task = std::numeric_limits<std::size_t>::max();
  std::exception_ptr error;

  void add(std::size_t failed, std::exception_ptr thrown) {
    const std::lock_guard lock(mutex);
    if (failed >= task) return;
    task = failed;
    error = std::move(thrown);
  }
};

}  // namespace

unsigned usable_processors() {
  return std::max(1U, std::thread::hardware_concurrency());
}

void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next = 0;
  FirstError first;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        task(i);
      } catch (...) {
        first.add(i, std::current_exception());
        next = count;
      }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) others.emplace_back(work);
    work();
  }
  if (first.error) std::rethrow_exception(first.error);
}

}  // namespace retort::base
