#pragma once
// The sequences of each step, read by one rank and shared among all: a step is the same sequences on any
// number of ranks.

#include <cstdint>
#include <vector>

#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/data/sequence_stream.h"

namespace retort::train {

/// What one rank has of a step.
struct StepShare {
  std::vector<data::Sequence> sequences;           ///< consecutive ones, perhaps none
  std::int64_t first_number = 0, last_number = 0;  ///< of the whole step
};

class StepSequences {
 public:
  /// `stream` belongs to rank 0 and is null on the others; both outlive it.  `count`: sequences of a step.
  StepSequences(data::SequenceStream* stream, comm::Group& group, std::int64_t count)
      : stream_(stream), group_(group), count_(count) {}

  /// This rank's share of the next step.  Throws on every rank what reading threw on rank 0.  Collective.
  StepShare next();
  /// Sequences of the rank that has most of a step.
  std::int64_t most() const { return (count_ + group_.size() - 1) / group_.size(); }
  /// The state after the last step; null except on rank 0.
  base::Json cursor() const { return stream_ ? stream_->cursor() : base::Json(); }
  void seek(const base::Json& cursor) {
    if (stream_) stream_->seek(cursor);
  }

 private:
  data::SequenceStream* stream_;
  comm::Group& group_;
  std::int64_t count_;
};

}  // namespace retort::train
