#include "retort/model/common_blocks.h"

#include <algorithm>

namespace retort::model {

std::optional<std::vector<std::int64_t>> blocks_within(const Lineage& student, const Lineage& teacher) {
  if (student.teacher_blocks != teacher.teacher_blocks || student.teacher_hidden != teacher.teacher_hidden)
    return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const auto block : student.blocks) {
    const auto found = std::ranges::find(teacher.blocks, block);
    if (found == teacher.blocks.end()) return std::nullopt;
    numbers.push_back(found - teacher.blocks.begin());
  }
  return numbers;
}

}  // namespace retort::model
