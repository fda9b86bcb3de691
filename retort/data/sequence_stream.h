#pragma once
// The packed sequences of a mixture, prepared ahead of time by a background thread.
// Which sequences come is a function of seed and sources alone; the thread only decides when they are ready.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "retort/base/json.h"
#include "retort/data/shuffled_sequences.h"

namespace retort::data {

class SequenceStream {
 public:
  /// Throws UsageError or DataError (for example a glob without match); reading starts with the first next().
  /// `prepared`: sequences that are made ahead of the caller, at least 1.
  SequenceStream(const std::vector<SourceOptions>& sources, const PackingOptions& packing, Encode encode,
                 const SpecialTokens& special, std::uint64_t seed, Split split = Split::training,
                 std::int64_t prepared = 32);
  /// Stops the thread; waits at most for the document being tokenized.
  ~SequenceStream();
  SequenceStream(const SequenceStream&) = delete;
  SequenceStream& operator=(const SequenceStream&) = delete;

  /// The next sequence; throws what the background thread met (DataError, StorageError, ...), and again if
  /// repeated.
  Sequence next();

  /// The state after the last sequence returned; small, whatever was prepared ahead.
  base::Json cursor() const;
  /// Goes on exactly after a cursor's sequence.  Throws DataError when sources, options or seed are not the
  /// same.
  void seek(const base::Json& cursor);
  /// As of the last sequence returned, so that they too are the same in every run; its whole window counts.
  const std::vector<SourceStatistics>& statistics() const { return statistics_; }
  /// Share of padding in what was packed by then, between 0 and 1; 0 where documents may be cut.
  double padding_share() const;

 private:
  struct Prepared {
    Sequence sequence;
    StreamCursor cursor;
    std::vector<SourceStatistics> statistics;
    std::int64_t padding = 0;
  };

  void start();
  void stop();
  void prepare(const std::stop_token& token);

  ShuffledSequences sequences_;  // belongs to the thread while that runs
  std::size_t prepared_;
  StreamCursor cursor_;
  std::vector<SourceStatistics> statistics_;
  std::int64_t padding_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Prepared> queue_;
  std::exception_ptr error_;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace retort::data
