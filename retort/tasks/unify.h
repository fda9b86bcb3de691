#pragma once
// Rows of JSON with one type for each column, as the library datasets reads them.

#include <string>
#include <vector>

#include "retort/base/json.h"

namespace retort::tasks {

/// Gives each row all columns, in the order in which they came, and each object within a column all keys that
/// it has in any row: what is missing is null.  Whole numbers beside real ones become real.  Returns the
/// columns.
std::vector<std::string> unify(std::vector<base::Json>& rows);

}  // namespace retort::tasks
