#pragma once
// Sums over ranks on the host, in the order of ranks.

#include <cstdint>
#include <span>

#include "retort/comm/buffer.h"

namespace retort::comm {

/// Writes the sum of `parts`, `count` values of `type` each, to `sum`, which may be one of the parts.
/// bfloat16 is added in float32 and rounded once, to nearest even.
void sum_in_order(std::span<const void* const> parts, std::int64_t count, Type type, void* sum);

}  // namespace retort::comm
