#include "retort/kernels/cpu/team.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

namespace retort::kernels::cpu {
namespace {

using Body = c10::function_ref<void(std::int64_t, std::int64_t)>;

// Longer than what lies between two products of a token, and too short to be missed by anybody else.
constexpr std::chrono::microseconds kWatching(50);
constexpr std::size_t kLine = 64;
constexpr int kPausesBeforeYielding = 256;  // about ten microseconds

void pause_briefly(int tries) {
#if defined(__x86_64__) || defined(_M_X64)
  if (tries < kPausesBeforeYielding) return __builtin_ia32_pause();
#endif
  std::this_thread::yield();
}

class Team {
 public:
  void run(std::int64_t count, std::int64_t least, int helpers, Body body) {
    const std::unique_lock alone(busy_, std::try_to_lock);
    if (!alone) return body(0, count);
    helpers = grown_to(helpers);
    body_ = &body;
    count_ = count;
    least_ = least;
    threads_ = helpers + 1;
    next_.store(0);
    wanted_.store(helpers);
    open_.store(true);
    posts_.fetch_add(1);
    posts_.notify_all();
    take_ranges();
    // A helper announces itself before it looks whether the work is open, so it is either seen here, or sees
    // that it came too late.
    open_.store(false);
    for (int tries = 0; inside_.load() != 0; ++tries) pause_briefly(tries);
  }

 private:
  int grown_to(int helpers) {
    try {
      for (; started_ < helpers; ++started_) std::thread([this, index = started_] { help(index); }).detach();
    } catch (const std::system_error&) {  // the system gives no more threads
    }
    return std::min(helpers, started_);
  }

  [[noreturn]] void help(int index) {
    for (std::uint32_t seen = 0;;) {
      seen = next_post(seen);
      if (index >= wanted_.load()) continue;
      inside_.fetch_add(1);
      if (open_.load()) take_ranges();
      inside_.fetch_sub(1);
    }
  }

  std::uint32_t next_post(std::uint32_t seen) {
    const auto until = std::chrono::steady_clock::now() + kWatching;
    for (int tries = 0; posts_.load() == seen; ++tries) {
      pause_briefly(tries);
      if (tries % 16 == 15 && std::chrono::steady_clock::now() > until) posts_.wait(seen);
    }
    return posts_.load();
  }

  // Large ranges first, so that the last ones, for which somebody has to wait, are small.
  void take_ranges() {
    auto begin = next_.load();
    while (begin < count_) {
      const auto size = std::max(least_, (count_ - begin) / (2 * threads_));
      const auto end = std::min(count_, begin + size);
      if (!next_.compare_exchange_weak(begin, end)) continue;
      (*body_)(begin, end);
      begin = next_.load();
    }
  }

  std::mutex busy_;
  int started_ = 0;
  // The work; written while it is closed and nobody is inside.
  const Body* body_ = nullptr;
  std::int64_t count_ = 0, least_ = 1, threads_ = 1;
  // What several threads write or watch lies apart, each in a cache line of its own.
  alignas(kLine) std::atomic<std::uint32_t> posts_{0};
  alignas(kLine) std::atomic<std::int64_t> next_{0};
  alignas(kLine) std::atomic<int> inside_{0};
  alignas(kLine) std::atomic<bool> open_{false};
  std::atomic<int> wanted_{0};
};

// Never destroyed: its threads sleep in it until the process ends.
Team& team() {
  static Team& everybody = *new Team;
  return everybody;
}

}  // namespace

void for_ranges(std::int64_t count, std::int64_t least, Body body) {
  if (count <= 0) return;
  const auto threads = std::min<std::int64_t>(at::get_num_threads(), (count + least - 1) / least);
  if (threads < 2 || at::in_parallel_region()) return body(0, count);
  team().run(count, least, static_cast<int>(threads) - 1, body);
}

}  // namespace retort::kernels::cpu
