#pragma once
// The linear assignment problem.

#include <cstdint>
#include <span>
#include <vector>

namespace retort::compress {

/// Gives each row a column of its own so that the sum of `cost` is least; result[row] is the column.
/// `cost`: count x count, row-major, finite.  O(count^3) by shortest augmenting paths.
/// Source: Jonker & Volgenant, "A shortest augmenting path algorithm" (1987), without its initial steps.
std::vector<std::int64_t> least_cost_assignment(std::span<const float> cost, std::int64_t count);

}  // namespace retort::compress
