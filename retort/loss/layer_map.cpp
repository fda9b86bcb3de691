#include "retort/loss/layer_map.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::loss {

std::vector<std::int64_t> layer_map(LayerMap kind, std::int64_t student_blocks, std::int64_t teacher_blocks,
                                    const std::vector<std::int64_t>& survivors) {
  base::require<base::UsageError>(student_blocks <= teacher_blocks, "layer_map: the student has ",
                                  student_blocks, " blocks, the teacher ", teacher_blocks,
                                  "; expected no more than the teacher has.");
  if (kind != LayerMap::relative_depth)
    base::require<base::UsageError>(
        static_cast<std::int64_t>(survivors.size()) == student_blocks &&
            (survivors.empty() || survivors.back() < teacher_blocks),
        "layer_map: the student's lineage does not fit this teacher of ", teacher_blocks,
        " blocks; use layer_map: relative_depth, or the teacher that the student was cut from.");
  std::vector<std::int64_t> map;
  for (std::int64_t i = 0; i < student_blocks; ++i) {
    const auto at = static_cast<std::size_t>(i);
    // relative_depth is round((i + 1) L_T / L_S) - 1, half up, in integers.
    std::int64_t phi = (2 * (i + 1) * teacher_blocks + student_blocks) / (2 * student_blocks) - 1;
    if (kind == LayerMap::surviving) phi = survivors[at];
    if (kind == LayerMap::before_survivor)
      phi = (i + 1 < student_blocks ? survivors[at + 1] : teacher_blocks) - 1;
    map.push_back(std::max<std::int64_t>(phi, 0));
  }
  return map;
}

}  // namespace retort::loss
