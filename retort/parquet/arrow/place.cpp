#include "retort/parquet/arrow/place.h"

#include "retort/base/printable.h"

namespace retort::parquet {
namespace {

// Arrow puts traces and bytes of the file into its messages.
constexpr std::size_t kMostFaultBytes = 300;
// What it has no code for, by its exceptions and its statuses.
constexpr std::string_view kNotYet = "Not yet implemented";

}  // namespace

std::string Place::words() const {
  std::string words = file;
  if (row_group >= 0) words += base::join(", row group ", row_group);
  if (row >= 0) words += base::join(", row ", row);
  if (!column.empty()) words += base::join(", column ", base::quote(column));
  return words;
}

void refuse(const Place& place, std::string_view expected, std::string_view found) {
  throw base::DataError(base::join(place.words(), ": expected ", expected, ", found ", found,
                                   "; write the file again with other settings, or leave it out."));
}

void refuse_damaged(const Place& place, LimitedPool& pool, std::string_view fault) {
  if (const auto refusal = pool.take_refusal(); !refusal.empty())
    refuse(place, "pages and rows that fit into memory", refusal);
  if (fault.starts_with(kNotYet))
    refuse(place, "what Apache Arrow reads",
           base::join("something else (", base::printable(fault.substr(0, kMostFaultBytes)), ")"));
  throw base::DataError(base::join(place.words(), ": expected a Parquet file that is whole, found damage (",
                                   base::printable(fault.substr(0, kMostFaultBytes)),
                                   "); fetch the file again."));
}

void require_ok(const Place& place, LimitedPool& pool, const arrow::Status& status) {
  if (status.ok()) return;
  const std::string not_yet = status.IsNotImplemented() ? base::join(kNotYet, ": ") : "";
  refuse_damaged(place, pool, not_yet + status.message());
}

}  // namespace retort::parquet
