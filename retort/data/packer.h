#pragma once
// Several sources mixed and packed into sequences of one length, on the caller's thread.
// Mixture: the next document comes from the source with the fewest tokens for its weight; no chance is
// involved, and the shares of tokens follow the weights.  Sequence k holds the tokens [k T, (k + 1) T) of the
// endless stream.
// Where a source's documents are not cut, the documents of so many sequences are taken together: whole ones
// are packed by best fit, the others are cut as ever, and what is not full is padded.  Nothing is carried
// from one such row of documents to the next, so a place is where a row begins and how many sequences were
// given.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/data/sequence.h"
#include "retort/data/shuffled_source.h"

namespace retort::data {

/// What has been drawn from a source so far, all epochs together.
struct SourceStatistics {
  std::string name;
  std::int64_t documents = 0;
  std::int64_t bytes = 0;          ///< of their text
  std::int64_t tokens = 0;         ///< with special tokens
  std::int64_t skipped_lines = 0;  ///< bad lines in one pass over the source, as far as it was read
  std::int64_t epoch = 0;          ///< complete passes over the source
  std::int64_t targets = 0;        ///< tokens that are learned
  // Documents that were passed over, all epochs together.
  std::int64_t too_long = 0;    ///< longer than a sequence, where they are not cut
  std::int64_t unanswered = 0;  ///< conversations without a token to learn
  std::int64_t refused = 0;     ///< conversations that the chat template refuses, where bad lines are skipped
};

/// Where a packer stands: the mixture before the document in which the next sequence begins, and how far into
/// it.
struct PackerCursor {
  struct Source {
    ShuffledSource::Place place;
    SourceStatistics statistics;
  };
  std::int64_t sequences = 0;      ///< already given
  std::int64_t offset_tokens = 0;  ///< of the next sequence's first token within the next document
  std::int64_t taken = 0;          ///< with whole documents: sequences already given of those packed together
  std::int64_t padding = 0;        ///< tokens of padding before those
  std::vector<Source> sources;
};

class SequencePacker {
 public:
  /// Throws UsageError (no source, equal names, a weight that is not positive, a missing special token) or
  /// DataError.
  SequencePacker(const std::vector<SourceOptions>& sources, const PackingOptions& packing, Encode encode,
                 const SpecialTokens& special, std::uint64_t seed, Split split = Split::training,
                 Targets targets = Targets::learned);

  /// The next sequence; the stream has no end, sources repeat.  Throws DataError (bad data, a source without
  /// a target).
  Sequence next();

  /// The state after the last sequence.
  PackerCursor cursor() const;
  /// Goes on where cursor() was taken; reads at most one window of each source again.
  void seek(const PackerCursor& cursor);
  std::vector<SourceStatistics> statistics() const;
  /// Tokens of padding in everything that was packed.
  std::int64_t padding() const { return padding_; }

  /// Identifies everything that the order depends on: seed, options, names and sizes of files.
  const std::string& fingerprint() const { return fingerprint_; }
  void stop_with(const std::stop_token& token);

 private:
  struct Mixed {
    SourceOptions options;
    ShuffledSource documents;
    SourceStatistics statistics;
    std::int64_t barren_epochs = 0;  // since the last target
  };

  void pull();
  void pack_row();
  Sequence next_of_row();
  Mixed& most_owed();
  std::optional<DocumentTokens> next_document(Mixed& source) const;
  void count(Mixed& source, const DocumentTokens& tokens) const;
  void require_progress(Mixed& source, bool barren) const;
  std::vector<PackerCursor::Source> snapshot() const;

  PackingOptions packing_;
  Encode encode_;
  SpecialTokens special_;
  Targets targets_;
  std::uint64_t seed_;
  bool packs_whole_ = false;  // documents of some source
  std::string fingerprint_;
  std::vector<Mixed> sources_;
  std::vector<PackerCursor::Source> before_;  // the mixture before the last pulled document
  TokenBuffer buffer_;
  std::size_t document_tokens_ = 0;  // of the last pulled document
  std::int64_t sequences_ = 0;
  std::vector<Sequence> row_;                      // packed together with whole documents; empty: not yet
  std::int64_t taken_ = 0;                         // of these
  std::int64_t padding_ = 0, padding_before_ = 0;  // of all, and before the row
};

}  // namespace retort::data
