#pragma once
// Which block of the teacher a block of the student is compared with.

#include <cstdint>
#include <vector>

#include "retort/loss/options.h"

namespace retort::loss {

/// Returns phi of a loss on hidden states: one teacher block per student block, both from 0, never falling.
/// `survivors`: the teacher block that each student block was; needed by the maps that say so.
/// Throws UsageError when the student has more blocks than the teacher, or the lineage does not fit the
/// teacher.
std::vector<std::int64_t> layer_map(LayerMap kind, std::int64_t student_blocks, std::int64_t teacher_blocks,
                                    const std::vector<std::int64_t>& survivors);

}  // namespace retort::loss
