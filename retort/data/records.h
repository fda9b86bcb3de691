#pragma once
// One file as a row of records: the lines of a JSONL file, the rows of a Parquet file, or the pieces of a
// plain text. Plain text is taken byte for byte; a byte order mark is dropped only in front of JSONL, which
// does not allow it.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "retort/base/files.h"
#include "retort/data/options.h"

namespace retort::data {

/// A longer document is refused: it would have to be held in memory.
inline constexpr std::size_t kMaxDocumentBytes = std::size_t{1} << 30;

/// Some programs put it in front of UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// What a record turned out to be.
enum class Record {
  document,
  blank,  ///< an empty line, or nothing but white space between two separators: not a document
  bad,    ///< a line or row that is not what the recipe says, when such lines are skipped
  end,    ///< the file has no more records
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// Reads one record; `text` holds the document's text if it is one.  Throws DataError (file, line and
  /// byte, or row group and row).
  virtual Record next(std::string& text) = 0;
  /// Passes over one record without interpreting it; false at the end.
  virtual bool skip() = 0;
};

/// Opens a file as what form_of() says it is.  Throws DataError for what is neither text, JSONL nor Parquet,
/// and EnvironmentError for Parquet without Apache Arrow.
std::unique_ptr<RecordReader> open_records(const SourceOptions& source, const base::Path& path);
/// Opens a file as JSONL whatever its name, for example standard input.
std::unique_ptr<RecordReader> open_jsonl(const SourceOptions& source, const base::Path& path);

}  // namespace retort::data
