#include "retort/model/common_blocks.h"

namespace retort::model {

std::optional<std::vector<std::int64_t>> blocks_within(const Lineage& student, const Lineage& teacher) {
  if (student.teacher_blocks != teacher.teacher_blocks || student.teacher_hidden != teacher.teacher_hidden)
    return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const auto& block : student.kept.blocks) {
    const auto* found = teacher.kept.find(block.number);
    if (!found) return std::nullopt;
    numbers.push_back(found - teacher.kept.blocks.data());
  }
  return numbers;
}

}  // namespace retort::model
