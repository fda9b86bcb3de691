#pragma once
// Files that `retort bench` writes; a file of something else is never replaced.  An empty name is no file.

#include <string>

#include "retort/base/json.h"
#include "retort/record/observer.h"

namespace retort::cli {

/// Throws UsageError where the file holds something else than rates.
void require_rates_file(const std::string& path);
/// Throws UsageError where the file holds something else than a page of `retort bench generate`.
void require_page_file(const std::string& path);

/// Writes it whole, and says so.  Throws StorageError.
void write_rates_file(const std::string& path, const base::Json& rates, record::Observer& observer);

}  // namespace retort::cli
