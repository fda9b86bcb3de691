#include "retort/comm/shared/shared_group.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/flight.h"
#include "retort/comm/shared/meeting.h"
#include "retort/comm/sum.h"
#include "retort/comm/waited.h"
#include "retort/comm/watchdog.h"
#include "retort/comm/worker_group.h"

namespace retort::comm {
namespace {

constexpr std::int64_t kStage = std::int64_t{1} << 20;  // bytes of a rank's part of the group's own memory
constexpr std::int64_t kSlotBytes = 64;
constexpr std::int64_t kBlockHead = 4096;
constexpr double kPatience_seconds = 30;  // with ranks that are stopped
constexpr double kAwake_seconds = 1;      // until all ranks of a suspended job have gone on

// What a rank says of its call before anything moves.
struct Slot {
  CallId call;
  std::int64_t from_offset, to_offset;
  std::atomic<std::int64_t> number;  // of the call, for those who look before all have come
};
static_assert(sizeof(Slot) <= kSlotBytes);

// Ranks that see one arena.
class SharedJob final : public Job {
 public:
  explicit SharedJob(std::shared_ptr<Arena> arena) : arena_(std::move(arena)) {}
  void abort(const std::string& sentence) noexcept override { arena_->abort(sentence); }
  bool abort_is_heard() const override { return true; }
  bool claim_last_words() noexcept override { return arena_->claim_last_words(); }

 private:
  std::shared_ptr<Arena> arena_;
};

// Gives its memory back when the last of its ranks is done with it.
class SharedBlock final : public CommonBlock {
 public:
  SharedBlock(std::shared_ptr<Arena> arena, std::int64_t offset, std::int64_t bytes)
      : arena_(std::move(arena)), offset_(offset), bytes_(bytes) {}
  ~SharedBlock() override {
    if (holders(*arena_, offset_).fetch_sub(1) == 1) arena_->give_back(offset_, bytes_ + kBlockHead);
  }
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  std::span<std::byte> bytes() const override {
    return {arena_->at(offset_ + kBlockHead), static_cast<std::size_t>(bytes_)};
  }
  static std::atomic<std::int32_t>& holders(const Arena& arena, std::int64_t offset) {
    return *reinterpret_cast<std::atomic<std::int32_t>*>(arena.at(offset));
  }

 private:
  std::shared_ptr<Arena> arena_;
  std::int64_t offset_, bytes_;
};

class SharedGroup final : public WorkerGroup {
 public:
  SharedGroup(const SharedWorld& world, std::shared_ptr<Job> job, std::shared_ptr<Worker> worker,
              std::vector<int> members, std::string level)
      : WorkerGroup(std::move(job), std::move(worker), std::move(level)),
        world_(world),
        members_(std::move(members)) {}
  ~SharedGroup() override {
    worker()->drain();
    close_exchange();
    if (present_) world_.arena->leave(rank());
  }

  /// From now on the others miss this process when it dies, until the group goes.
  void be_present() {
    world_.arena->join(rank(), rank());
    present_ = true;
  }

  int rank() const override { return world_.rank; }
  int size() const override { return world_.size; }
  int node() const override { return 0; }

  std::unique_ptr<Group> split(int color, const std::string& level) override;
  std::unique_ptr<CommonBlock> common_block(std::int64_t bytes) override;
  bool has_common_memory() const override { return world_.common_blocks; }

 protected:
  void enter(const Collective& call, const CallId& id) override {
    times_ = call.patient ? kPatientTimes : 1;
    tell(call, id);
    meet_all();
    require_the_same_call();
  }
  void leave() override { meet_all(); }  // slots and buffers may be used again
  void look(const CallId& call, Waited& waited, double times) override {
    look_around(waited, times, [&](double seconds) {
      return base::join(described(call), " of '", level(), "' did not move within ",
                        static_cast<std::int64_t>(seconds), " s");
    });
  }
  void end_all(const std::string& sentence) override { world_.arena->abort(sentence); }

 private:
  Meeting& meeting() const { return *reinterpret_cast<Meeting*>(world_.arena->at(world_.control)); }
  Slot& slot(int rank) const {
    return *reinterpret_cast<Slot*>(world_.arena->at(world_.control + kSlotBytes * (1 + rank)));
  }
  std::byte* stage(int rank) const {
    return world_.arena->at(world_.control + kSlotBytes * (1 + size()) + kStage * rank);
  }

  // Nobody waits for ranks that will not come.  `late` says who is, where nothing else explains it.
  void look_around(Waited& waiting, double times,
                   const std::function<std::string(double seconds)>& late) const {
    const double waited = waiting.seconds();
    auto& arena = *world_.arena;
    const auto end_by = [&](const std::string& what) {
      arena.abort(base::join(what, "; start the same command again to go on from what is kept."));
    };
    if (const auto sentence = arena.abort_sentence(); !sentence.empty()) throw base::PeerError(sentence);
    const auto end_without = [&](const Absent& absent, const std::string& since) {
      end_by(base::join(absent.sentence, " while others waited for it in '", level(), "'", since,
                        was("it", absent.local_rank)));
    };
    if (const auto missing = arena.missing(members_)) return end_without(*missing, "");
    const double least = least_patience_seconds(), patience = job().patience_seconds();
    // Also while steps may take long.
    const bool is_long = world_.processes && waited >= (least > 0 ? least : kPatience_seconds);
    if (const auto stopped = is_long ? arena.stopped(members_) : std::nullopt) {
      if (!waiting.stopped_since) waiting.stopped_since = waited;
      if (waited - *waiting.stopped_since >= kAwake_seconds)
        end_without(*stopped, base::join(" for ", static_cast<std::int64_t>(waited), " s"));
      return;
    }
    waiting.stopped_since.reset();
    if (patience > 0 && waited >= patience * times) end_by(late(waited));
  }

  void meet_all() const {
    meet(meeting(), size(), [this, waited = Waited()]() mutable {
      look_around(waited, times_, [this](double seconds) { return late(seconds); });
    });
  }

  // Who has not said yet what the others have, and where the first of them was.
  std::string late(double waited) const {
    const auto& arena = *world_.arena;
    const auto& own = slot(rank()).call;
    std::string names, place;
    for (int other = 0; other < size(); ++other) {
      if (slot(other).number >= own.number) continue;
      const int local_rank = members_[static_cast<std::size_t>(other)];
      if (names.empty()) place = was(arena.described(local_rank), local_rank);
      names += base::join(names.empty() ? "rank " : ", ", arena.name_of(local_rank));
    }
    return base::join(names.empty() ? "a rank" : names, " did not come to ", described(own), " of '", level(),
                      "' within ", static_cast<std::int64_t>(waited), " s", place);
  }

  // Where a rank was, as its record says; empty where there is none.
  std::string was(const std::string& who, int local_rank) const {
    const auto& flight = job().flight();
    const auto record =
        flight ? flight_of(flight->directory(), world_.arena->name_of(local_rank)) : std::nullopt;
    return record ? base::join("; ", who, " was ", last_place(*record)) : "";
  }

  void tell(const Collective& call, const CallId& id) {
    auto& own = slot(rank());
    own.call = id;
    own.from_offset = world_.arena->offset_of(call.from.data);
    own.to_offset = world_.arena->offset_of(call.to.data);
    own.number = id.number;
  }

  void require_the_same_call() const {
    const auto& first = slot(0).call;
    const auto name = [this](int rank) {
      return world_.arena->name_of(members_[static_cast<std::size_t>(rank)]);
    };
    for (int other = 1; other < size(); ++other) {
      const auto& theirs = slot(other).call;
      if (theirs == first) continue;
      const auto sentence = different_calls(level(), name(0), first, name(other), theirs);
      world_.arena->abort(sentence);
      throw base::PeerError(sentence);
    }
  }

  // Whether every rank's buffer lies in common memory.
  bool all_common(std::int64_t Slot::*offset) const {
    for (int other = 0; other < size(); ++other)
      if (slot(other).*offset < 0) return false;
    return true;
  }
  bool all_equal(std::int64_t Slot::*offset) const {
    for (int other = 1; other < size(); ++other)
      if (slot(other).*offset != slot(0).*offset) return false;
    return true;
  }

  void copy(std::byte* to, const void* from, std::int64_t bytes) {
    if (to == from) return;
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_of(int other, std::byte* to, const void* from, std::int64_t bytes) {
    copy(to, from, bytes);
    if (other != rank()) note_moved(bytes);
  }

  void gather(const Collective& call) override {
    const auto part = call.from.bytes();
    auto* all = static_cast<std::byte*>(call.to.data);
    const auto* own = static_cast<const std::byte*>(call.from.data);
    if (all_common(&Slot::to_offset) && all_equal(&Slot::to_offset)) {  // one buffer that all see
      copy(all + rank() * part, own, part);
      return;
    }
    if (all_common(&Slot::from_offset)) {
      for (int other = 0; other < size(); ++other)
        copy_of(other, all + other * part, world_.arena->at(slot(other).from_offset), part);
      return;
    }
    copy(all + rank() * part, own, part);
    in_stages(part, [&](std::int64_t begin, std::int64_t bytes) {
      copy(stage(rank()), own + begin, bytes);
      meet_all();
      for (int other = 0; other < size(); ++other)
        if (other != rank()) copy_of(other, all + other * part + begin, stage(other), bytes);
    });
  }

  // Calls `act` with pieces of `bytes` that a stage holds; the ranks meet between them.
  template <typename Act>
  void in_stages(std::int64_t bytes, const Act& act, std::int64_t largest = kStage) {
    for (std::int64_t begin = 0; begin < bytes; begin += largest) {
      if (begin > 0) meet_all();
      act(begin, std::min(largest, bytes - begin));
    }
  }

  void reduce(const Collective& call) override {
    const auto part = call.to.bytes(), item = size_of(call.to.type);
    const auto mine = rank() * part;
    std::vector<const void*> parts(static_cast<std::size_t>(size()));
    auto* own = static_cast<std::byte*>(call.to.data);
    if (all_common(&Slot::from_offset)) {
      for (int other = 0; other < size(); ++other)
        parts[static_cast<std::size_t>(other)] = world_.arena->at(slot(other).from_offset) + mine;
      note_moved((size() - 1) * part);
      sum_in_order(parts, call.to.count, call.to.type, own);
      return;
    }
    // A stage holds a piece of every rank's part.
    const auto piece = kStage / size() / item * item;
    const auto* all = static_cast<const std::byte*>(call.from.data);
    in_stages(
        part,
        [&](std::int64_t begin, std::int64_t bytes) {
          for (int other = 0; other < size(); ++other)
            copy(stage(rank()) + other * piece, all + other * part + begin, bytes);
          meet_all();
          for (int other = 0; other < size(); ++other)
            parts[static_cast<std::size_t>(other)] = stage(other) + rank() * piece;
          note_moved((size() - 1) * bytes);
          sum_in_order(parts, bytes / item, call.to.type, own + begin);
        },
        piece);
  }

  void sum_everywhere(const Collective& call) override {
    const auto item = size_of(call.to.type);
    auto* values = static_cast<std::byte*>(call.to.data);
    std::vector<const void*> parts;
    for (int other = 0; other < size(); ++other) parts.push_back(stage(other));
    in_stages(call.to.bytes(), [&](std::int64_t begin, std::int64_t bytes) {
      copy(stage(rank()), values + begin, bytes);
      meet_all();
      note_moved((size() - 1) * bytes);
      sum_in_order(parts, bytes / item, call.to.type, values + begin);
    });
  }

  void spread(const Collective& call) override {
    auto* values = static_cast<std::byte*>(call.to.data);
    in_stages(call.to.bytes(), [&](std::int64_t begin, std::int64_t bytes) {
      if (rank() == call.root) copy(stage(call.root), values + begin, bytes);
      meet_all();
      if (rank() != call.root) copy_of(call.root, values + begin, stage(call.root), bytes);
    });
  }

  SharedWorld world_;
  std::vector<int> members_;
  bool present_ = false;
  double times_ = 1;  // the patience of the call at hand; of the worker's thread
};

std::unique_ptr<Group> SharedGroup::split(int color, const std::string& level) {
  SharedWorld part = world_;
  part.size = 0;
  std::vector<int> members;
  int first = -1;
  const auto colors = all_values(color);
  for (int other = 0; other < size(); ++other) {
    if (colors[static_cast<std::size_t>(other)] != color) continue;
    if (first < 0) first = other;
    if (other == rank()) part.rank = part.size;
    ++part.size;
    members.push_back(members_[static_cast<std::size_t>(other)]);
  }
  const auto own_control = first == rank() ? world_.arena->take(control_bytes(part.size)) : 0;
  part.control = all_values(own_control)[static_cast<std::size_t>(first)];
  return std::make_unique<SharedGroup>(part, shared_job(), worker(), std::move(members), level);
}

std::unique_ptr<CommonBlock> SharedGroup::common_block(std::int64_t bytes) {
  if (!world_.common_blocks) return {};
  std::int64_t offset = 0;
  if (rank() == 0) {
    offset = world_.arena->take(bytes + kBlockHead);
    SharedBlock::holders(*world_.arena, offset) = size();
  }
  broadcast({&offset, sizeof offset}, 0).wait();
  return std::make_unique<SharedBlock>(world_.arena, offset, bytes);
}

}  // namespace

std::int64_t control_bytes(int size) {
  return kSlotBytes * (1 + size) + kStage * size;
}

std::unique_ptr<Group> shared_group(const SharedWorld& world) {
  std::vector<int> members;
  for (int rank = 0; rank < world.size; ++rank) members.push_back(rank);
  auto group = std::make_unique<SharedGroup>(world, std::make_shared<SharedJob>(world.arena),
                                             std::make_shared<Worker>(), std::move(members), "world");
  if (world.processes) group->be_present();
  return group;
}

std::unique_ptr<Group> shared_group(const SharedWorld& world, std::shared_ptr<Job> job,
                                    std::shared_ptr<Worker> worker, std::vector<int> members,
                                    const std::string& level) {
  return std::make_unique<SharedGroup>(world, std::move(job), std::move(worker), std::move(members), level);
}

}  // namespace retort::comm
