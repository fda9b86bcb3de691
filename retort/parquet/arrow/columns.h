#pragma once
// Which leaves of a file a column's name means.  "a.b" is the part b of the struct a, or of the structs in
// the list a; a column whose own name has a dot comes first.

#include <parquet/arrow/schema.h>

#include <string_view>
#include <vector>

#include "retort/parquet/arrow/opened_file.h"

namespace retort::parquet {

/// The top-level column that a name begins with, and what of it is asked for.
struct Asked {
  std::size_t column = 0;  ///< of OpenedFile::columns
  const ::parquet::arrow::SchemaField* field = nullptr;
  bool in_list = false;  ///< a row has several of it
};

/// Throws DataError that names the nearest column, and all.
Asked find_column(const OpenedFile& file, std::string_view name);

/// The leaves of a field, as the file numbers them.
std::vector<int> leaves_of(const ::parquet::arrow::SchemaField& field);

}  // namespace retort::parquet
