#pragma once
// Which blocks two models have in common, by where both come from.

#include <cstdint>
#include <optional>
#include <vector>

#include "retort/model/lineage.h"

namespace retort::model {

/// For each block of `student` the number of the same block in `teacher`; nothing unless both were cut from
/// one original and the teacher still has all of them.
std::optional<std::vector<std::int64_t>> blocks_within(const Lineage& student, const Lineage& teacher);

}  // namespace retort::model
