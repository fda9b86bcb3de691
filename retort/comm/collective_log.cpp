#include "retort/comm/collective_log.h"

#include <algorithm>

namespace retort::comm {

std::int64_t ring_bytes(Op op, std::int64_t bytes, std::int64_t ranks) {
  if (op == Op::barrier || ranks < 2) return 0;
  return (op == Op::all_reduce ? 2 : 1) * (bytes - bytes / ranks);
}

CollectiveCount& CollectiveLog::at(Op op, std::int64_t bytes) {
  auto& count = counts_[{op, bytes}];
  count.op = op;
  count.bytes = bytes;
  return count;
}

void CollectiveLog::called(Op op, std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  ++at(op, bytes).calls;
}

void CollectiveLog::ended(Op op, std::int64_t bytes, std::int64_t moved_bytes, double seconds) {
  if (told_) told_({op, bytes, seconds, false});
  const std::scoped_lock lock(mutex_);
  auto& count = at(op, bytes);
  count.moved_bytes += moved_bytes;
  count.seconds += seconds;
}

void CollectiveLog::waited(Op op, std::int64_t bytes, double seconds) {
  if (told_) told_({op, bytes, seconds, true});
  add_exposed(op, bytes, seconds);
}

void CollectiveLog::add_exposed(Op op, std::int64_t bytes, double seconds) {
  const std::scoped_lock lock(mutex_);
  at(op, bytes).exposed_seconds += seconds;
}

void CollectiveLog::waits(Op op, std::int64_t bytes, std::shared_ptr<Mark> from, std::shared_ptr<Mark> to) {
  note_passed_waits();
  const std::scoped_lock lock(mutex_);
  waits_.push_back({op, bytes, std::move(from), std::move(to)});
}

void CollectiveLog::note_passed_waits() {
  std::vector<Wait> passed;
  {
    const std::scoped_lock lock(mutex_);
    for (; !waits_.empty() && waits_.front().to->reached(); waits_.pop_front())
      passed.push_back(std::move(waits_.front()));
  }
  for (const auto& wait : passed) add_exposed(wait.op, wait.bytes, wait.to->seconds_since(*wait.from));
}

std::vector<CollectiveCount> CollectiveLog::counts() {
  note_passed_waits();
  const std::scoped_lock lock(mutex_);
  std::vector<CollectiveCount> counts;
  for (const auto& [key, count] : counts_) counts.push_back(count);
  return counts;
}

void CollectiveLog::clear() {
  const std::scoped_lock lock(mutex_);
  counts_.clear();
  waits_.clear();
}

std::vector<CollectiveCount> since(const std::vector<CollectiveCount>& before,
                                   std::vector<CollectiveCount> now) {
  for (const auto& earlier : before) {
    const auto same = std::ranges::find_if(
        now, [&](const auto& count) { return count.op == earlier.op && count.bytes == earlier.bytes; });
    if (same == now.end()) continue;  // the log was cleared
    same->calls -= earlier.calls;
    same->moved_bytes -= earlier.moved_bytes;
    same->seconds -= earlier.seconds;
    same->exposed_seconds -= earlier.exposed_seconds;
  }
  std::erase_if(now, [](const auto& count) { return count.calls == 0; });
  return now;
}

}  // namespace retort::comm
