#pragma once
// What a source's file is, told from its first bytes; its name only where these leave it open.

#include <string_view>

#include "retort/base/files.h"
#include "retort/data/options.h"

namespace retort::data {

/// What may stand around a JSON object on its line.
inline constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

enum class FileForm {
  text,
  jsonl,   ///< a JSON object a line
  parquet  ///< a table with the texts as a column
};

/// Whether it begins as a Parquet file does, or is named .parquet.
bool is_parquet(const base::Path& path);

/// Parquet as is_parquet() says.  JSONL is what is named .jsonl or .ndjson (before .gz, .zst), and what
/// begins with two lines that each hold a JSON object; of a .json one such line suffices.  Throws DataError
/// for what is neither: a binary format, UTF-16, a NUL byte near the beginning, one JSON document.  What is
/// no regular file, such as standard input, goes by its name alone, because it cannot be read twice.
FileForm form_of(const SourceOptions& source, const base::Path& path);

/// Looks at the first bytes of all files of a source, and of its held-out part; of Parquet at what it says of
/// its columns.  Throws DataError, also for plain text that is not UTF-8 there, and EnvironmentError for a
/// Parquet file without Apache Arrow.
void check_files(const SourceOptions& source);

}  // namespace retort::data
