#pragma once
// A group of any size whose other ranks are nowhere.  Nothing moves, every call is noted, and a clock says
// how long links of given rates would take.  For layouts of more ranks than a machine has.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "retort/comm/call.h"
#include "retort/comm/group.h"

namespace retort::comm {

/// What a call takes: its latency, and what it brings to this rank at that rate.
struct Link {
  double latency_seconds = 0;
  double bytes_per_second = 0;  ///< 0: without end
};

struct RecordedCall {
  std::string level;  ///< of its group
  CallId id;
  std::int64_t moved_bytes = 0;  ///< to this rank, as each backend at least has to move
  double begin_seconds = 0, end_seconds = 0;

  bool operator==(const RecordedCall&) const = default;
};

/// The calls of a rank, of all its groups, and its time: what it computes, and what calls take beside that.
/// Calls take place one after the other, in their order.
class Recording {
 public:
  /// By level of group; a level that is not named takes no time.
  explicit Recording(std::map<std::string, Link, std::less<>> links = {}) : links_(std::move(links)) {}

  /// The rank computes for so long.
  void compute(double seconds) { now_seconds_ += seconds; }
  const std::vector<RecordedCall>& calls() const { return calls_; }
  double now_seconds() const { return now_seconds_; }
  /// Of these, how long the rank only waited.
  double waited_seconds() const { return waited_seconds_; }

  /// For groups: notes a call, which begins when those before it have ended.  Returns its place.
  std::size_t add(std::string_view level, const CallId& id, std::int64_t moved_bytes);
  /// The rank goes on when that call has ended; returns the seconds that it waited.
  double wait(std::size_t call);

 private:
  std::map<std::string, Link, std::less<>> links_;
  std::vector<RecordedCall> calls_;
  double now_seconds_ = 0, waited_seconds_ = 0;
};

struct RecordedRank {
  std::string level = "world";
  int rank = 0, size = 1, ranks_per_node = 1;
  /// The color with which any rank makes the group of a level: split() knows no other ranks to ask.
  std::function<int(std::string_view level, int rank)> color = {};
};

/// What another rank would give is zeros where a buffer is the host's, and nothing elsewhere; sums are of
/// this rank alone.  split() throws InternalError where this rank's color is not the one of the rule.
std::unique_ptr<Group> recorded_group(std::shared_ptr<Recording> recording, RecordedRank rank);

}  // namespace retort::comm
