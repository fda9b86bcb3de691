#include "retort/prune/masked_model.h"

#include <ATen/ATen.h>

#include "retort/base/hash.h"
#include "retort/model/forward.h"
#include "retort/model/tokens.h"

namespace retort::prune {
namespace {

// 1 for what is kept; undefined when all is.
at::Tensor mask_of(const std::vector<std::int64_t>& kept, std::int64_t width,
                   const at::TensorOptions& options) {
  if (std::ssize(kept) == width) return {};
  auto mask_I = at::zeros({width}, options);
  mask_I.index_fill_(0, model::index_tensor(kept, options.device()), 1);
  return mask_I;
}

std::string hash_of(const std::string& before, const std::vector<std::int64_t>& first,
                    const std::vector<std::int64_t>& second) {
  base::Hasher hasher;
  hasher.update(before.data(), before.size());
  for (const auto* numbers : {&first, &second}) {
    const auto count = numbers->size();
    hasher.update(&count, sizeof count);
    hasher.update(numbers->data(), count * sizeof numbers->front());
  }
  return hasher.hex();
}

MaskedModel::Block block_of(const model::Weights& input, const architecture::Kept& candidate,
                            std::int64_t number, compress::CompensatedLayers* compensated) {
  MaskedModel::Block block;
  block.keeps = candidate.find(number) != nullptr;
  if (!block.keeps) return block;
  const auto options = input.options();
  for (const auto* part : compress::parts()) {
    if (!part->of_blocks()) continue;
    const auto inputs = compress::kept_inputs(*part, input.config, candidate, number);
    part->mask(block.hooks) = mask_of(inputs, compress::inputs_of(*part, input.config, number), options);
    if (inputs.empty())
      block.changes.push_back({part, {}});
    else if (compensated && part->mask(block.hooks).defined())
      if (auto fitted = compensated->weight_DC(number, part->reader, inputs); fitted.defined())
        block.changes.push_back({part, std::move(fitted)});
  }
  return block;
}

}  // namespace

MaskedModel::MaskedModel(const model::Weights& whole, const architecture::Kept& candidate,
                         compress::CompensatedLayers* compensated)
    : input(whole) {
  mask_D = mask_of(candidate.hidden, input.config.hidden_size, input.options());
  auto prefix = hash_of(compensated ? "compensated" : "plain", candidate.hidden, {});
  for (std::int64_t block = 0; block < std::ssize(input.config.blocks); ++block) {
    blocks.push_back(block_of(input, candidate, block, compensated));
    blocks.back().prefix = prefix;
    blocks.back().hooks.hidden_mask_D = mask_D;
    const auto* kept = candidate.find(block);
    prefix = kept ? hash_of(prefix, kept->channels, kept->kv_groups) : hash_of(prefix, {}, {});
  }
}

model::BlockWeights MaskedModel::weights_of_block(std::int64_t block) const {
  auto weights = model::weights_of_block(input, block);
  for (const auto& change : blocks[static_cast<std::size_t>(block)].changes) {
    if (change.fitted.defined())
      change.part->reader_weight(weights) = change.fitted;
    else
      change.part->skip(weights);
  }
  return weights;
}

}  // namespace retort::prune
