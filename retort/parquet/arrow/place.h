#pragma once
// Where in a file something was found, and what is thrown there.

#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "retort/base/as_errors.h"
#include "retort/base/error.h"
#include "retort/parquet/arrow/limited_pool.h"

namespace retort::parquet {

struct Place {
  std::string file = {};
  std::int64_t row_group = -1;  ///< from 0; -1: of the whole file
  std::int64_t row = -1;        ///< of the row group, from 0; -1: not known
  std::string column = {};

  /// "data.parquet, row group 2, row 17, column \"text\"".
  std::string words() const;
};

/// Throws DataError: at this place `expected`, `found`, and the advice to write the file again.
[[noreturn]] void refuse(const Place& place, std::string_view expected, std::string_view found);

/// Turns what Arrow threw or gave back into the sentence that belongs to it.
[[noreturn]] void refuse_damaged(const Place& place, LimitedPool& pool, std::string_view fault);

void require_ok(const Place& place, LimitedPool& pool, const arrow::Status& status);

template <typename Value>
Value taken(const Place& place, LimitedPool& pool, arrow::Result<Value> result) {
  require_ok(place, pool, result.status());
  return std::move(result).ValueUnsafe();
}

/// What is thrown within, of whatever type, as an error of ours; returns what `act` returns.
template <typename Act>
auto guarded(const Place& place, LimitedPool& pool, const Act& act) {
  try {
    return act();
  } catch (const base::Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw base::MemoryError(base::join(place.words(), ": ", base::out_of_memory()));
  } catch (const std::exception& fault) {
    refuse_damaged(place, pool, fault.what());
  }
}

}  // namespace retort::parquet
