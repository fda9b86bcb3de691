#pragma once
// Values of Arrow's arrays as JSON.

#include <arrow/array.h>

#include <cstddef>

#include "retort/base/json.h"
#include "retort/parquet/arrow/place.h"

namespace retort::parquet {

/// More in one row would take gigabytes as JSON.
inline constexpr std::size_t kMostValuesOfRow = std::size_t{1} << 23;

/// Throws DataError for a type, or a part of one, that JSON has no word for.
void require_json_type(const Place& place, const arrow::DataType& type);

/// Makes values of one row; `place` is named in errors.
class JsonValues {
 public:
  explicit JsonValues(const Place& place) : place_(place) {}
  /// The value `i` of an array whose type was accepted.  Throws DataError for text that is not UTF-8, a date
  /// outside of the years 1 to 9999, and for a row of too many values.
  base::Json value(const arrow::Array& array, std::int64_t i);

 private:
  base::Json present(const arrow::Array& array, std::int64_t i);
  base::Json text(std::string_view bytes) const;
  base::Json list(const arrow::Array& values, std::int64_t begin, std::int64_t length);
  base::Json pairs(const arrow::MapArray& array, std::int64_t i);
  base::Json object(const arrow::StructArray& array, std::int64_t i);

  const Place& place_;
  std::size_t made_ = 0;
};

}  // namespace retort::parquet
