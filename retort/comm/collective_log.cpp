#include "retort/comm/collective_log.h"

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
  const std::scoped_lock lock(mutex_);
  at(op, bytes).exposed_seconds += seconds;
}

std::vector<CollectiveCount> CollectiveLog::counts() const {
  const std::scoped_lock lock(mutex_);
  std::vector<CollectiveCount> counts;
  for (const auto& [key, count] : counts_) counts.push_back(count);
  return counts;
}

void CollectiveLog::clear() {
  const std::scoped_lock lock(mutex_);
  counts_.clear();
}

}  // namespace retort::comm
