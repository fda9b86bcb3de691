#include "retort/parquet/arrow/iso_time.h"

#include <arrow/type.h>

#include <array>
#include <chrono>
#include <cstdio>

namespace retort::parquet {
namespace {

constexpr std::int64_t kSecondsOfDay = 24 * 60 * 60;

struct Unit {
  std::int64_t of_second;
  int digits;
};

Unit measure(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return {1, 0};
    case arrow::TimeUnit::MILLI:
      return {1000, 3};
    case arrow::TimeUnit::MICRO:
      return {1'000'000, 6};
    case arrow::TimeUnit::NANO:
      return {1'000'000'000, 9};
  }
  return {1, 0};
}

std::int64_t rounded_down(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace

std::int64_t days_of(std::int64_t milliseconds) {
  return rounded_down(milliseconds, kSecondsOfDay * 1000);
}

std::string iso_date(const Place& place, std::int64_t days) {
  using namespace std::chrono;
  constexpr sys_days kFirst = year(1) / January / 1, kLast = year(9999) / December / 31;
  if (days < kFirst.time_since_epoch().count() || days > kLast.time_since_epoch().count())
    refuse(place, "dates of the years 1 to 9999", base::join("one ", days, " days after 1970"));
  const year_month_day date{sys_days(std::chrono::days(days))};
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text.data();
}

std::string iso_time(const Place& place, std::int64_t count, arrow::TimeUnit::type unit) {
  const auto [of_second, digits] = measure(unit);
  if (count < 0 || count >= kSecondsOfDay * of_second)
    refuse(place, "times within a day", base::join(count, " parts of a second"));
  const auto second = static_cast<int>(count / of_second);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%02d:%02d:%02d", second / 3600, second / 60 % 60, second % 60);
  std::string time = text.data();
  if (const auto fraction = count % of_second; fraction > 0) {
    std::snprintf(text.data(), text.size(), ".%0*lld", digits, static_cast<long long>(fraction));
    time += text.data();
  }
  return time;
}

std::string iso_timestamp(const Place& place, std::int64_t count, arrow::TimeUnit::type unit, bool utc) {
  const std::int64_t day = kSecondsOfDay * measure(unit).of_second;
  const std::int64_t days = rounded_down(count, day);
  return iso_date(place, days) + "T" + iso_time(place, count - days * day, unit) + (utc ? "Z" : "");
}

}  // namespace retort::parquet
