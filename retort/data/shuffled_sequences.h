#pragma once
// Packed sequences shuffled inside a bounded window, so that one long document does not fill a whole batch.
// The permutation is drawn from (seed, window); a place is where the packer stood before the window, and how
// many of its sequences were given.

#include <cstdint>
#include <vector>

#include "retort/base/json.h"
#include "retort/data/packer.h"

namespace retort::data {

/// Where the shuffled row of sequences stands.
struct StreamCursor {
  PackerCursor window_start;
  std::int64_t taken = 0;  ///< sequences of the window already given
};

class ShuffledSequences {
 public:
  ShuffledSequences(SequencePacker packer, std::int64_t sequences, std::uint64_t seed);

  /// The next sequence, numbered in the order in which they are given.  Throws as SequencePacker::next.
  Sequence next();

  /// The state after the last sequence.
  StreamCursor cursor() const;
  /// Goes on where cursor() was taken; packs one window again, at the next call of next().
  void seek(const StreamCursor& cursor);

  /// Of everything that was packed, the rest of the window included.
  std::vector<SourceStatistics> statistics() const { return packer_.statistics(); }
  /// Tokens of padding in everything that was packed.
  std::int64_t padding() const { return packer_.padding(); }
  const std::string& fingerprint() const { return packer_.fingerprint(); }
  void stop_with(const std::stop_token& token) { packer_.stop_with(token); }

 private:
  void load();

  SequencePacker packer_;
  std::int64_t sequences_;  // of a window
  std::uint64_t seed_;
  StreamCursor cursor_;
  std::vector<Sequence> window_;  // in the order in which they are given; empty: not loaded
};

/// The cursor as it is saved; reading it back throws DataError when it is damaged.
base::Json to_json(const StreamCursor& cursor);
StreamCursor cursor_from_json(const base::Json& json);

}  // namespace retort::data
