#include "retort/train/step_sequences.h"

#include <algorithm>
#include <string>
#include <utility>

#include "retort/comm/lead.h"
#include "retort/comm/share.h"
#include "retort/data/sequence_bytes.h"

namespace retort::train {

void StepSequences::fetch(std::int64_t others) {
  if (fetched_) return;
  std::vector<data::Sequence> sequences;
  const auto read = [&] {
    for (std::int64_t i = 0; i < count_ - others; ++i) sequences.push_back(stream_->next());
  };
  if (group_.size() == 1) {
    read();
  } else {
    const auto bytes = comm::led(group_, [&] {
      read();
      return data::to_bytes(sequences);
    });
    if (!stream_) sequences = data::sequences_of(bytes);
  }
  fetched_.emplace();
  if (!sequences.empty()) {
    fetched_->first_number = sequences.front().number;
    fetched_->last_number = sequences.back().number;
  }
  const auto own = comm::share_of(static_cast<std::size_t>(count_), group_.rank(), group_.size());
  for (auto i = own.first; i < std::min(own.last, sequences.size()); ++i)
    fetched_->sequences.push_back(std::move(sequences[i]));
}

StepShare StepSequences::next(std::int64_t others) {
  fetch(others);
  if (stream_) cursor_ = stream_->cursor();
  return *std::exchange(fetched_, {});
}

void StepSequences::seek(const base::Json& cursor) {
  cursor_ = cursor;
  fetched_.reset();
  if (stream_) stream_->seek(cursor);
}

}  // namespace retort::train
