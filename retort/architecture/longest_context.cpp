#include "retort/architecture/longest_context.h"

#include <algorithm>

namespace retort::architecture {
namespace {

std::int64_t longest_context(const Rope& rope, std::int64_t positions) {
  if (rope.kind == Rope::Kind::dynamic) return std::int64_t{1} << 31;
  if (rope.kind != Rope::Kind::yarn) return positions;
  return std::max(positions,
                  static_cast<std::int64_t>(rope.factor * static_cast<double>(rope.original_context)));
}

}  // namespace

std::int64_t longest_context(const Config& config) {
  const auto positions = config.max_position_embeddings;
  if (config.ropes.empty()) return positions;
  std::int64_t longest = std::int64_t{1} << 31;
  for (const auto& rope : config.ropes) longest = std::min(longest, longest_context(rope, positions));
  return longest;
}

}  // namespace retort::architecture
