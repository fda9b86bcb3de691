#pragma once
// A group of ranks and what they do together.  Each backend has a folder of its own: single/ is a group of
// one, shared/ holds ranks that see common memory, mpi/ ranks of several machines, and recorded/ ranks that
// are nowhere.
//
// All calls are collective: every rank makes them in the same order with the same sizes.  Sums are added in
// the order of ranks, bfloat16 in float32, so that the same call gives the same bits again.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "retort/comm/buffer.h"
#include "retort/comm/collective_log.h"
#include "retort/comm/job.h"

namespace retort::comm {

/// What a collective that is under way ends with.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Returns once the buffers may be used; throws what went wrong, and again if repeated.
  virtual void wait() = 0;
};

/// A collective that was started.  One that holds nothing has ended.
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}
  /// Returns once the buffers may be used; throws PeerError where another rank failed.
  void wait() {
    if (const auto pending = std::move(pending_)) pending->wait();
  }

 private:
  std::shared_ptr<Pending> pending_;
};

/// One call: what it takes, where it leaves its result, and for a broadcast whose values count.
struct Collective {
  Op op = Op::barrier;
  ConstBuffer from;
  Buffer to;
  int root = 0;
  bool patient = false;  ///< a rank may read or write before it comes: kPatientTimes the patience of others
};
/// How many times longer a patient call waits for a rank than others do.
inline constexpr double kPatientTimes = 20;

/// Memory that all ranks of a group see, each at an address of its own.  Its bytes are zero at first.
class CommonBlock {
 public:
  virtual ~CommonBlock() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

class Group {
 public:
  virtual ~Group() = default;
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// What the group is for: "world", "node", ... stands in errors and in the log.
  virtual const std::string& level() const = 0;
  /// Ranks of one machine have the same number, those of another machine another.
  virtual int node() const = 0;
  /// node() of every rank.  Collective.
  virtual std::vector<int> nodes();

  /// Fills `all`, size() parts of equal length, with every rank's `own`, which may be its place in `all`.
  /// Buffers are left alone until the handle was waited for.
  [[nodiscard]] Handle all_gather(ConstBuffer own, Buffer all);
  /// Adds `all` over the ranks and leaves this rank's part in `own`, which may be its place in `all`.
  [[nodiscard]] Handle reduce_scatter(ConstBuffer all, Buffer own);
  /// Replaces each value by its sum over the ranks.
  [[nodiscard]] Handle all_reduce(Buffer values);
  /// Replaces the values by those of rank `root`.
  [[nodiscard]] Handle broadcast(Buffer values, int root);
  /// Returns once every rank is here.
  void barrier();

  /// Ranks of equal `color` become a group, in their order here; `level` names it.
  virtual std::unique_ptr<Group> split(int color, const std::string& level) = 0;
  /// Memory that all ranks of the group see; null when they have none in common.  Collective.
  virtual std::unique_ptr<CommonBlock> common_block(std::int64_t bytes) = 0;
  /// Whether the ranks of a machine have such memory, in a group of their own; the same on all ranks.
  virtual bool has_common_memory() const = 0;

  /// Replaces each value by its sum over the ranks, and returns when it is there.
  void all_sum(std::span<double> values);
  /// The value of every rank, in the order of ranks.
  template <typename T>
  requires std::is_trivially_copyable_v<T> std::vector<T> all_values(const T& own) {
    std::vector<T> all(static_cast<std::size_t>(size()));
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
    all_gather({&own, kBytes, Type::bytes}, {all.data(), kBytes * size(), Type::bytes}).wait();
    return all;
  }
  /// The text of every rank, each as long as it likes, in the order of ranks.
  std::vector<std::string> all_texts(const std::string& own);
  /// Replaces `text` by that of rank `root`.
  void share(std::string& text, int root = 0);
  /// Runs `act` on this rank.  Where it throws on one, every rank throws what the first of those did; the
  /// others as a base::Error.  Memory that ran out on some ranks only is told with the rank's place.
  void agree(const std::function<void()>& act);
  /// Runs `act`, which throws on every rank or on none, because it knows nothing but what all know.
  void together(const std::function<void()>& act);
  /// Whether agree() or together() threw: no other rank waits for this one, and none has to be told.
  bool failed_together() const { return failed_together_; }
  /// What they threw was dealt with by all ranks, which go on: a later failure is one of its own.
  void recovered() noexcept;

  /// What this process's groups share, and how all ranks end.
  virtual Job& job() const = 0;

  /// What the group did since it was made.
  CollectiveLog& log() { return log_; }

 protected:
  /// Starts a call whose buffers were checked.
  virtual Handle start(const Collective& call) = 0;
  CollectiveLog log_;

 private:
  bool failed_together_ = false;
  bool patient_ = false;  // within agree()
};

/// Group::agree() where there is a group, else `act` alone.
void agree(Group* group, const std::function<void()>& act);

/// Says why a process ends, where nothing can be thrown any more.
using LastWords = void (*)(const std::string& sentence);

/// The group of one.
std::unique_ptr<Group> single_group();

}  // namespace retort::comm
