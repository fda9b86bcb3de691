#pragma once
// An open file with what it says of itself, shared by all that read it.

#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <memory>
#include <vector>

#include "retort/parquet/arrow/limited_pool.h"
#include "retort/parquet/arrow/place.h"
#include "retort/parquet/table.h"

namespace retort::parquet {

struct OpenedFile {
  OpenedFile(const base::Path& path, const Limits& limits);

  ::parquet::ParquetFileReader& pages() const { return *reader->parquet_reader(); }
  const ::parquet::FileMetaData& metadata() const { return *metadata_; }
  int groups() const { return static_cast<int>(rows_of_groups.size()); }

  base::Path path;
  Limits limits;
  mutable LimitedPool pool;  // before the reader, which gives back to it
  std::unique_ptr<::parquet::arrow::FileReader> reader;
  std::vector<Column> columns;
  std::vector<std::int64_t> rows_of_groups;

 private:
  void read_description();

  std::shared_ptr<::parquet::FileMetaData> metadata_;
};

}  // namespace retort::parquet
