#pragma once
// A source read in order, one document at a time, in memory that does not grow with it.
// A split is what a purpose may see: training sees what is not held out, evaluation sees only what is held
// out.

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "retort/data/options.h"
#include "retort/data/records.h"

namespace retort::data {

enum class Split { training, held_out, all };

struct Document {
  std::string text;
  std::int64_t number =
      0;  ///< within the source, from 0 over all its files in order; a skipped line keeps its number
  base::Path file;
  std::int64_t record = 0;  ///< line of JSONL, row of Parquet or piece of plain text in that file, from 1
};

/// Thrown out of a reader whose stop token was triggered; never leaves the library.
struct Stopped {};

/// Where a text lies between 0 and 1, by its hash: a held-out fraction takes the texts below it.
double held_out_place(std::string_view text);
/// Whether a rule without files holds a document out: by its number or its text.
bool is_held_out(const HeldOut& rule, const Document& document);

class DocumentReader {
 public:
  /// Between two documents; small and exact.
  struct Position {
    std::int64_t file = 0;           ///< index into files()
    std::int64_t record = 0;         ///< records of that file already read
    std::int64_t number = 0;         ///< of the next document
    std::int64_t skipped_lines = 0;  ///< bad lines passed since the source's beginning
    bool operator==(const Position&) const = default;
  };

  /// Throws DataError (a path without a file) or UsageError (contradicting held-out rules).
  DocumentReader(SourceOptions source, Split split);

  /// Reads the next document of the split; false at the end.  Throws DataError or StorageError.
  bool next(Document& document);

  Position position() const { return position_; }
  /// Goes to a position that position() gave; reads past earlier records of that one file, without parsing
  /// them.
  void seek(const Position& position);

  const SourceOptions& source() const { return source_; }
  const std::vector<base::Path>& files() const { return files_; }
  std::int64_t skipped_lines() const { return position_.skipped_lines; }
  /// Documents passed since the source's beginning, whatever their split.
  std::int64_t documents_passed() const { return position_.number; }
  /// Reading stops with `Stopped` soon after the token is triggered.
  void stop_with(std::stop_token token) { stop_ = std::move(token); }

 private:
  bool open_next();
  bool belongs(const Document& document) const;

  SourceOptions source_;
  Split split_;
  std::vector<base::Path> files_;
  std::vector<std::uint64_t> held_out_texts_;  // sorted hashes, when the held-out part is given as files
  std::unique_ptr<RecordReader> records_;
  Position position_;
  std::stop_token stop_;
};

}  // namespace retort::data
