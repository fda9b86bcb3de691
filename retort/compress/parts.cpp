#include "retort/compress/parts.h"

#include <array>

namespace retort::compress {

std::span<const Part* const> parts() {
  static constexpr std::array<const Part*, 3> kParts = {&kKvGroups, &kChannels, &kHiddenFeatures};
  return kParts;
}

std::int64_t inputs_of(const Part& part, const architecture::Config& input, std::int64_t block) {
  const auto& shape = input.blocks[static_cast<std::size_t>(block)];
  return part.count(input, block) * part.columns_each(shape, part.reader);
}

std::vector<std::int64_t> kept_inputs(const Part& part, const architecture::Config& input,
                                      const architecture::Kept& kept, std::int64_t block) {
  const auto& shape = input.blocks[static_cast<std::size_t>(block)];
  return architecture::rows_of(part.left(kept, block), part.columns_each(shape, part.reader));
}

}  // namespace retort::compress
