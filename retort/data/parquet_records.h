#pragma once
// The rows of a Parquet file as records: one column has the texts.

#include <memory>

#include "retort/data/records.h"

namespace retort::data {

/// What is said of a chat where text is expected.
inline constexpr const char* kNoChats =
    "; a source with chat: true, or retort eval --chat, has the model's chat template write it";

/// Reads the column `source.field`, or a part of a struct by its path with dots  A row whose text is null or
/// not UTF-8 is a bad line.  What is passed over within a row group is not parsed, and whole row groups are
/// not read. Throws as parquet::open, and DataError for a column that is missing or holds no text.
std::unique_ptr<RecordReader> open_parquet(const SourceOptions& source, const base::Path& path);
/// The same of conversations, in the columns that conversations.h names.  A row without one is a bad line.
std::unique_ptr<RecordReader> open_parquet_chats(const SourceOptions& source, const base::Path& path);

}  // namespace retort::data
