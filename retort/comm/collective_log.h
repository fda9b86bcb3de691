#pragma once
// What a group did: how often, how many bytes, how long, by operation and size.  Noting a call never waits
// for it.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "retort/base/words.h"
#include "retort/comm/accelerator.h"

namespace retort::comm {

enum class Op { barrier, all_gather, reduce_scatter, all_reduce, broadcast };
constexpr auto words_of(Op) {
  return base::words<Op::broadcast>("barrier", "all_gather", "reduce_scatter", "all_reduce", "broadcast");
}

/// Bytes that a rank of a ring receives in a call of `bytes`, as CollectiveCount counts them, in the mean
/// over ranks: (n - 1) / n of them, all_reduce twice as many.  No algorithm moves large buffers with less.
std::int64_t ring_bytes(Op op, std::int64_t bytes, std::int64_t ranks);

/// Calls of one operation and size.
struct CollectiveCount {
  Op op = Op::barrier;
  std::int64_t bytes = 0;  ///< of one call: all_gather's output, reduce_scatter's input, else the buffer
  std::int64_t calls = 0;
  std::int64_t moved_bytes = 0;  ///< that this rank read from others, of all calls
  double seconds = 0;            ///< from a call's beginning on its thread to its end
  double exposed_seconds = 0;    ///< that the caller waited, or its computation on an accelerator
};

/// A call that ended, or that its caller has waited for, just now.
struct TimedCall {
  Op op;
  std::int64_t bytes;  ///< as in CollectiveCount
  double seconds;
  bool waited;  ///< the caller's waiting, not the call
};

class CollectiveLog {
 public:
  void called(Op op, std::int64_t bytes);
  void ended(Op op, std::int64_t bytes, std::int64_t moved_bytes, double seconds);
  void waited(Op op, std::int64_t bytes, double seconds);
  /// An accelerator's computation waits between these marks: how long is known when it has passed them.
  void waits(Op op, std::int64_t bytes, std::shared_ptr<Mark> from, std::shared_ptr<Mark> to);
  /// By operation and size.  Waits that an accelerator has not passed are left out.
  std::vector<CollectiveCount> counts();
  void clear();
  /// Tells each call, on the thread where it ends or is waited for; not how long an accelerator's computation
  /// waits, which is known too late.  Before the first call.
  void watch(std::function<void(const TimedCall&)> told) { told_ = std::move(told); }

 private:
  struct Wait {
    Op op;
    std::int64_t bytes;
    std::shared_ptr<Mark> from, to;
  };
  CollectiveCount& at(Op op, std::int64_t bytes);
  void add_exposed(Op op, std::int64_t bytes, double seconds);
  void note_passed_waits();
  std::mutex mutex_;
  std::deque<Wait> waits_;  // in the order of the computation
  std::map<std::pair<Op, std::int64_t>, CollectiveCount> counts_;
  std::function<void(const TimedCall&)> told_;
};

/// What was counted between two readings of one log.
std::vector<CollectiveCount> since(const std::vector<CollectiveCount>& before,
                                   std::vector<CollectiveCount> now);

}  // namespace retort::comm
