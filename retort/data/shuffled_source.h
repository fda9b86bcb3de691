#pragma once
// A source as an endless row of documents: epoch after epoch, shuffled inside a bounded window.
// The order is a function of (seed, source, epoch, window), so a place in it is four small numbers.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/data/document_reader.h"

namespace retort::data {

struct ShuffleOptions {
  std::uint64_t seed = 0;
  std::int64_t documents = 4096;  ///< of a window
  std::int64_t bytes = std::int64_t{64}
                       << 20;  ///< of text in a window, closed by the document that reaches it
};

class ShuffledSource {
 public:
  /// Which document comes next.
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t window = 0;                ///< within the epoch
    std::int64_t taken = 0;                 ///< documents of the window already given
    DocumentReader::Position window_start;  ///< where the window begins in the source
    bool operator==(const Place&) const = default;
  };

  ShuffledSource(DocumentReader reader, const ShuffleOptions& options);

  /// Gives the next document that has text.  Throws DataError naming the source when an epoch has none.
  void next(Document& document);

  const Place& place() const { return place_; }
  /// Reads one window again, at the next call of next().
  void seek(const Place& place);

  const DocumentReader& reader() const { return reader_; }
  void stop_with(std::stop_token token) { reader_.stop_with(std::move(token)); }

 private:
  void load();
  void advance();
  void refuse_empty() const;

  DocumentReader reader_;
  ShuffleOptions options_;
  Place place_;
  bool loaded_ = false;
  std::vector<Document> window_;  // in the order in which they are given
};

}  // namespace retort::data
