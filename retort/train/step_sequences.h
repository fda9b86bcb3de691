#pragma once
// The sequences of each step, read by one rank and shared among all: a step is the same sequences on any
// number of ranks.

#include <cstdint>
#include <optional>
#include <vector>

#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/data/sequence_stream.h"

namespace retort::train {

/// What one rank has of a step.
struct StepShare {
  std::vector<data::Sequence> sequences = {};        ///< consecutive ones, perhaps none
  std::int64_t first_number = -1, last_number = -1;  ///< of the whole step; -1: none of it was read
};

class StepSequences {
 public:
  /// `stream` belongs to rank 0 and is null on the others; both outlive it.  `count`: sequences of a step.
  StepSequences(data::SequenceStream* stream, comm::Group& group, std::int64_t count)
      : stream_(stream), group_(group), count_(count) {}

  /// Fetches the next step's sequences, unless they are there: before an update, whose new weights the ranks
  /// then exchange while they compute.  The last `others` of a step are not read: they come from elsewhere.
  /// Throws on every rank what reading threw on rank 0.  Collective.
  void fetch(std::int64_t others = 0);
  /// This rank's share of the next step, fetched before or now.
  StepShare next(std::int64_t others = 0);
  /// Sequences of the rank that has most of a step.
  std::int64_t most() const { return (count_ + group_.size() - 1) / group_.size(); }
  /// The state after what next() gave last; null except on rank 0.
  const base::Json& cursor() const { return cursor_; }
  void seek(const base::Json& cursor);

 private:
  data::SequenceStream* stream_;
  comm::Group& group_;
  std::int64_t count_;
  std::optional<StepShare> fetched_;
  base::Json cursor_;
};

}  // namespace retort::train
