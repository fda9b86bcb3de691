#include "retort/compress/readers.h"

#include "retort/compress/parts.h"

namespace retort::compress {

using architecture::Half;
using architecture::Role;

Role reader_of(Half half) {
  return half == Half::attention ? Role::output : Role::down;
}

at::Tensor& reader_weight(model::BlockWeights& weights, Half half) {
  return half == Half::attention ? weights.output_DY : weights.down_DI;
}

at::Tensor& input_mask(model::BlockHooks& hooks, Half half) {
  return half == Half::attention ? hooks.head_mask_Y : hooks.channel_mask_I;
}

void skip(model::BlockWeights& weights, Half half) {
  if (half == Half::attention)
    weights.shape.attention.reset();
  else
    weights.down_DI = at::Tensor();
}

std::int64_t inputs_of(const architecture::Config& input, Half half, std::int64_t block) {
  const auto& shape = input.blocks[static_cast<std::size_t>(block)];
  if (half == Half::mlp) return mlp_width(shape);
  return shape.attention ? shape.attention->num_heads * shape.attention->head_dim : 0;
}

std::vector<std::int64_t> kept_inputs(const architecture::Config& input, const architecture::Kept& kept,
                                      Half half, std::int64_t block) {
  const auto& shape = input.blocks[static_cast<std::size_t>(block)];
  auto inputs = architecture::counted(inputs_of(input, half, block));
  for (const auto kind : architecture::kPartKinds)
    if (architecture::half_of(kind) == half)
      inputs = kept_places(std::move(inputs), part_of(kind).columns_each(shape, reader_of(half)),
                           architecture::count_of(input, kind, block),
                           architecture::numbers_of(kept, kind, block));
  return inputs;
}

}  // namespace retort::compress
