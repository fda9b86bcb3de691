#pragma once
// What `retort bench` prints for people, from its JSON.

#include <string>

#include "retort/base/json.h"

namespace retort::cli {

/// Ceilings, and a table of products for each compute type.
std::string gemm_tables(const base::Json& rates);
/// Ceilings, and a table of operations for each compute type.
std::string kernel_tables(const base::Json& rates);
/// A table of models for each batch and length, and what follows from them.
std::string generation_tables(const base::Json& rates);

}  // namespace retort::cli
