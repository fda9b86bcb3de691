#pragma once
// The door of the module that links Apache Arrow.  A program loads it with the first Parquet file.

#include "retort/parquet/table.h"

/// The release that the module belongs to; another one's has other types.
extern "C" const char* retort_parquet_release();

/// As retort::parquet::open; the caller deletes the table.
extern "C" retort::parquet::Table* retort_parquet_open(const retort::base::Path& path,
                                                       const retort::parquet::Limits& limits);
