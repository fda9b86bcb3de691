#pragma once
// Tables in Parquet files, read column by column in bounded memory.  Apache Arrow's C++ library reads them;
// it lies in a module that is loaded with the first such file, so that a program runs without it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::parquet {

/// Four bytes at the beginning and at the end of a Parquet file.
inline constexpr std::string_view kMagic = "PAR1";

/// How much one file may take, whatever it claims.
struct Limits {
  std::size_t memory_bytes = std::size_t{4} << 30;  ///< that Arrow holds of the file at a time
  std::size_t value_bytes = std::size_t{1} << 30;   ///< of one text, and of one page of a column
};

/// A column of the whole table; one with parts has its parts in the type.
struct Column {
  std::string name;
  std::string type;  ///< as Arrow writes it, for example "list<element: string>"
};

/// Where a reader stands, as messages say it: file, row group and row, both from 0.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Passes over `rows` rows and returns over how many there were; row groups that lie within are not read.
  /// Throws DataError.
  virtual std::int64_t skip(std::int64_t rows) = 0;
  /// The row that was read last: "data.parquet, row group 2, row 17, column \"text\"".
  virtual std::string place() const = 0;
};

/// The texts of one column, row by row.  Memory: a page and a dictionary of the column.
class Texts : public Reader {
 public:
  /// Reads the next row; false at the end.  Throws DataError that names file, row group and column.
  virtual bool next() = 0;
  /// Of the row that was read, valid until the next call; nothing where it is null.  Its bytes are as they
  /// lie in the file, UTF-8 or not.
  virtual std::optional<std::string_view> text() const = 0;
};

/// Rows as objects, the columns in the order of the file.  A struct is an object and a list an array; a map
/// is an array of pairs.  Booleans, numbers, nulls and texts stay; dates, times and decimals are their text.
class Rows : public Reader {
 public:
  /// Reads the next row; false at the end.  Throws DataError that names file, row group and column, also for
  /// text that is not UTF-8.
  virtual bool next(base::Json& row) = 0;
};

/// An open file.  What reads it keeps it open, and may outlive it.
class Table {
 public:
  virtual ~Table() = default;
  virtual const std::vector<Column>& columns() const = 0;
  virtual std::int64_t rows() const = 0;
  /// Of each row group, in their order.
  virtual const std::vector<std::int64_t>& rows_of_groups() const = 0;
  /// The texts of a column, "text", or of a part of a struct, "answer.value".  Throws DataError where there
  /// is no such column (naming the nearest, and all), or one that holds no text.
  virtual std::unique_ptr<Texts> texts(std::string_view column) const = 0;
  /// The rows with these columns; of "answers.text" a row has the object "answers" with this part alone.
  /// None: all columns.  Throws DataError for a column that is not there, or of a type that JSON has no word
  /// for.
  virtual std::unique_ptr<Rows> read(const std::vector<std::string>& columns) const = 0;
};

/// Opens a file and reads what it says of itself.  Throws StorageError (cannot be read), DataError (no
/// Parquet file, or a damaged one) and EnvironmentError (no Apache Arrow).
std::unique_ptr<Table> open(const base::Path& path, const Limits& limits = {});

/// Why this program reads no Parquet file, with what to install; empty where it reads them.
std::string why_not_here();

}  // namespace retort::parquet
