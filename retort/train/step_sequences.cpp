#include "retort/train/step_sequences.h"

#include <string>
#include <utility>

#include "retort/comm/lead.h"
#include "retort/comm/share.h"
#include "retort/data/sequence_bytes.h"

namespace retort::train {

void StepSequences::fetch() {
  if (fetched_) return;
  std::vector<data::Sequence> sequences;
  const auto read = [&] {
    for (std::int64_t i = 0; i < count_; ++i) sequences.push_back(stream_->next());
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
  fetched_ = {.first_number = sequences.front().number, .last_number = sequences.back().number};
  const auto own = comm::share_of(sequences.size(), group_.rank(), group_.size());
  for (auto i = own.first; i < own.last; ++i) fetched_->sequences.push_back(std::move(sequences[i]));
}

StepShare StepSequences::next() {
  fetch();
  if (stream_) cursor_ = stream_->cursor();
  return *std::exchange(fetched_, {});
}

void StepSequences::seek(const base::Json& cursor) {
  cursor_ = cursor;
  fetched_.reset();
  if (stream_) stream_->seek(cursor);
}

}  // namespace retort::train
