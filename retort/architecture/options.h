#pragma once
// The kinds of parts that a recipe may let a model lose, beside whole blocks.

#include <array>
#include <cstddef>
#include <optional>

#include "retort/base/words.h"

namespace retort::architecture {

/// In the order in which a step offers them.  Their words are those of files.
enum class PartKind { kv_groups, channels, hidden };
constexpr auto words_of(PartKind) {
  return base::words<PartKind::hidden>("kv_groups", "channels", "hidden");
}
inline constexpr auto kPartKinds = [] {
  std::array<PartKind, words_of(PartKind{}).size()> kinds{};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) kinds[kind] = static_cast<PartKind>(kind);
  return kinds;
}();

/// A block is two halves, each with a last layer of its own: o_proj, down_proj.
enum class Half { attention, mlp };
inline constexpr std::array kHalves = {Half::attention, Half::mlp};

/// The half that a part belongs to, and that is gone without any of it; none: the part is of the whole model.
constexpr std::optional<Half> half_of(PartKind kind) {
  switch (kind) {
    case PartKind::kv_groups:
      return Half::attention;
    case PartKind::channels:
      return Half::mlp;
    case PartKind::hidden:
      break;
  }
  return std::nullopt;
}

}  // namespace retort::architecture
