#include "retort/comm/recorded/recorded_group.h"

#include <algorithm>
#include <cstring>

#include "retort/base/error.h"

namespace retort::comm {
namespace {

// Waits by the clock of the recording.
class Noted final : public Pending {
 public:
  Noted(std::shared_ptr<Recording> recording, std::size_t call, CollectiveLog& log, Op op, std::int64_t bytes)
      : recording_(std::move(recording)), call_(call), log_(log), op_(op), bytes_(bytes) {}
  void wait() override { log_.waited(op_, bytes_, recording_->wait(call_)); }

 private:
  std::shared_ptr<Recording> recording_;
  std::size_t call_;
  CollectiveLog& log_;
  Op op_;
  std::int64_t bytes_;
};

class RecordedGroup final : public Group {
 public:
  RecordedGroup(std::shared_ptr<Recording> recording, RecordedRank own)
      : recording_(std::move(recording)), own_(std::move(own)) {
    base::ensure(own_.rank >= 0 && own_.rank < own_.size && own_.ranks_per_node > 0,
                 "a recorded rank is one of its group");
  }
  int rank() const override { return own_.rank; }
  int size() const override { return own_.size; }
  const std::string& level() const override { return own_.level; }
  int node() const override { return own_.rank / own_.ranks_per_node; }
  std::vector<int> nodes() override {
    std::vector<int> all(static_cast<std::size_t>(own_.size));
    for (int rank = 0; rank < own_.size; ++rank)
      all[static_cast<std::size_t>(rank)] = rank / own_.ranks_per_node;
    return all;
  }

  std::unique_ptr<Group> split(int color, const std::string& level) override {
    base::ensure(own_.color && own_.color(level, own_.rank) == color,
                 "a recorded rank takes the color that the rule of its group says");
    RecordedRank part{.level = level, .rank = 0, .size = 0, .ranks_per_node = 0, .color = {}};
    int here = 0;
    for (int rank = 0; rank < own_.size; ++rank) {
      if (own_.color(level, rank) != color) continue;
      if (rank < own_.rank) ++part.rank;
      if (rank / own_.ranks_per_node == node()) ++here;
      ++part.size;
    }
    part.ranks_per_node = here;
    return std::make_unique<RecordedGroup>(recording_, std::move(part));
  }
  std::unique_ptr<CommonBlock> common_block(std::int64_t) override { return {}; }
  bool has_common_memory() const override { return false; }
  Job& job() const override { return *job_; }

 protected:
  Handle start(const Collective& call) override {
    const auto bytes = std::max(call.from.bytes(), call.to.bytes());
    const auto moved = moved_by(call, own_.rank, own_.size);
    const auto place = recording_->add(own_.level, id_of(call, ++number_), moved);
    const auto& noted = recording_->calls()[place];
    log_.ended(call.op, bytes, moved, noted.end_seconds - noted.begin_seconds);
    fill(call);
    return Handle(std::make_shared<Noted>(recording_, place, log_, call.op, bytes));
  }

 private:
  // A host goes on with what it was given; an accelerator's memory may not be there at all.
  void fill(const Collective& call) const {
    const bool in_place = call.op == Op::all_reduce || call.op == Op::broadcast;
    if (in_place || call.to.device != Device::cpu || call.to.bytes() == 0) return;
    auto* to = static_cast<std::byte*>(call.to.data);
    const auto* from = static_cast<const std::byte*>(call.from.data);
    const auto bytes = static_cast<std::size_t>(std::min(call.from.bytes(), call.to.bytes()));
    const auto part = static_cast<std::size_t>(own_.rank) * bytes;
    if (call.op == Op::reduce_scatter) {
      std::memmove(to, from + part, bytes);
    } else {
      std::memmove(to + part, from, bytes);
      std::memset(to, 0, part);
      std::memset(to + part + bytes, 0, static_cast<std::size_t>(call.to.bytes()) - part - bytes);
    }
  }

  std::shared_ptr<Job> job_ = lone_job();
  std::shared_ptr<Recording> recording_;
  RecordedRank own_;
  std::int64_t number_ = 0;
};

}  // namespace

std::size_t Recording::add(std::string_view level, const CallId& id, std::int64_t moved_bytes) {
  const auto found = links_.find(level);
  const auto link = found == links_.end() ? Link{} : found->second;
  const double begin = std::max(now_seconds_, calls_.empty() ? 0 : calls_.back().end_seconds);
  const double moving =
      link.bytes_per_second > 0 ? static_cast<double>(moved_bytes) / link.bytes_per_second : 0;
  calls_.push_back({.level = std::string(level),
                    .id = id,
                    .moved_bytes = moved_bytes,
                    .begin_seconds = begin,
                    .end_seconds = begin + link.latency_seconds + moving});
  return calls_.size() - 1;
}

double Recording::wait(std::size_t call) {
  const double waited = std::max(0.0, calls_.at(call).end_seconds - now_seconds_);
  now_seconds_ += waited;
  waited_seconds_ += waited;
  return waited;
}

std::unique_ptr<Group> recorded_group(std::shared_ptr<Recording> recording, RecordedRank rank) {
  return std::make_unique<RecordedGroup>(std::move(recording), std::move(rank));
}

}  // namespace retort::comm
