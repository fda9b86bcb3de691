#include "retort/data/shuffled_sequences.h"

#include <utility>

#include "retort/base/error.h"
#include "retort/base/random.h"

namespace retort::data {

ShuffledSequences::ShuffledSequences(SequencePacker packer, std::int64_t sequences, std::uint64_t seed)
    : packer_(std::move(packer)), sequences_(sequences), seed_(seed) {
  cursor_.window_start = packer_.cursor();
}

Sequence ShuffledSequences::next() {
  if (window_.empty()) load();
  Sequence sequence = std::move(window_[static_cast<std::size_t>(cursor_.taken)]);
  sequence.number = cursor_.window_start.sequences + cursor_.taken;
  if (++cursor_.taken == sequences_) {
    cursor_ = {.window_start = packer_.cursor(), .taken = 0};
    window_.clear();
  }
  return sequence;
}

StreamCursor ShuffledSequences::cursor() const {
  return cursor_;
}

void ShuffledSequences::seek(const StreamCursor& cursor) {
  base::require<base::DataError>(cursor.taken < sequences_, "data cursor: expected less than ", sequences_,
                                 " sequences of a window, found ", cursor.taken,
                                 "; the saved state is damaged.");
  packer_.seek(cursor.window_start);
  cursor_ = cursor;
  window_.clear();
}

void ShuffledSequences::load() {
  std::vector<Sequence> window;
  for (std::int64_t i = 0; i < sequences_; ++i) window.push_back(packer_.next());
  base::Random random(seed_, base::stream_of(base::join("sequences/", cursor_.window_start.sequences)));
  base::shuffle(window, random);
  window_ = std::move(window);
}

}  // namespace retort::data
