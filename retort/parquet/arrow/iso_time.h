#pragma once
// Days and times of the Gregorian calendar as ISO 8601 writes them.

#include <arrow/type_fwd.h>

#include <cstdint>
#include <string>

#include "retort/parquet/arrow/place.h"

namespace retort::parquet {

/// Days since 1970 of milliseconds since then, rounded down.
std::int64_t days_of(std::int64_t milliseconds);

/// "2026-11-29".  Throws DataError for a day outside of the years 1 to 9999.
std::string iso_date(const Place& place, std::int64_t days);

/// "13:05:00", and with a fraction where there is one: as many digits as its unit has.  `count`: units since
/// midnight. Throws DataError for what lies outside of a day.
std::string iso_time(const Place& place, std::int64_t count, arrow::TimeUnit::type unit);

/// "2026-11-29T13:05:00.250", with Z behind it where it is in UTC.  `count`: units since 1970.  Throws
/// DataError.
std::string iso_timestamp(const Place& place, std::int64_t count, arrow::TimeUnit::type unit, bool utc);

}  // namespace retort::parquet
