#include "retort/eval/text_weights.h"

#include <ATen/ATen.h>

#include <set>

#include "retort/base/index.h"
#include "retort/model/dtype.h"
#include "retort/ops/elementwise.h"
#include "retort/shard/acquired_unit.h"

namespace retort::eval {
namespace {

using base::to_size;

at::Tensor wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

std::int64_t unit_of(std::size_t block) {
  return architecture::Layout::block_unit(static_cast<std::int64_t>(block));
}

}  // namespace

TextWeights::TextWeights(shard::Parameters& parameters, GatheredUnits gathered)
    : config_(parameters.config()), layout_(parameters.layout()) {
  const shard::AcquiredUnit first(parameters, 0);  // for the type that blocks compute in
  options_ = first.flat().options();
  if (!parameters.resident() && gathered == GatheredUnits::again) {
    gathered_ = &parameters;
    return;
  }
  // What is packed is a copy on a CPU only, and the embedding is read in its place.
  const auto kept = [&](const at::Tensor& flat, bool packed) {
    return parameters.resident() || (packed && flat.is_cpu()) ? flat : flat.clone();
  };
  embedding_VD_ = model::embedding_matrix(layout_, kept(first.flat(), false));
  for (std::size_t block = 0; block < config_.blocks.size(); ++block) {
    const shard::AcquiredUnit unit(parameters, unit_of(block));
    parameters.prefetch(block + 1 < config_.blocks.size() ? unit_of(block + 1) : layout_.head_unit());
    blocks_.push_back(packed_block(block, kept(unit.flat(), true)));
  }
  head_ = packed_head(kept(shard::AcquiredUnit(parameters, layout_.head_unit()).flat(), true));
}

TextWeights::TextWeights(const model::UnitSource& source, at::ScalarType dtype, at::Device device)
    : config_(source.config),
      layout_(source.layout),
      options_(at::TensorOptions().dtype(dtype).device(device)) {
  const auto read = [&](std::int64_t unit) { return model::read_unit(source, to_size(unit), dtype, device); };
  const auto first = read(0);
  embedding_VD_ = model::embedding_matrix(layout_, first);
  for (std::size_t block = 0; block < config_.blocks.size(); ++block)
    blocks_.push_back(packed_block(block, read(unit_of(block))));
  head_ = packed_head(layout_.head_unit() == 0 ? first : read(layout_.head_unit()));
}

model::BlockWeights TextWeights::packed_block(std::size_t block, const at::Tensor& flat) const {
  auto weights = model::block_weights(config_.blocks[block], layout_.units[to_size(unit_of(block))], flat);
  model::pack_for_texts(weights);
  return weights;
}

TextWeights::Head TextWeights::packed_head(const at::Tensor& flat) const {
  const auto head = model::head_weights(layout_, flat);
  return {wide(head.norm_D).clone(), ops::PackedLinear(head.matrix_VD)};
}

std::string TextWeights::packing() const {
  std::set<std::string> types;
  const auto add = [&](const ops::PackedLinear& matrix) {
    if (matrix.defined()) types.insert(model::dtype_name(matrix.weights().scalar_type()));
  };
  for (const auto& block : blocks_)
    for (const auto* matrix :
         {&block.apart.qkv, &block.apart.output, &block.apart.gate_up, &block.apart.down})
      add(*matrix);
  add(head_.matrix);
  std::string names;
  for (const auto& type : types) names += (names.empty() ? "" : ", ") + type;
  return names;
}

at::Tensor TextWeights::embedded(const at::Tensor& ids_N) {
  if (!gathered_) return model::embed(embedding_VD_, ids_N, config_.embedding_factor);
  const shard::AcquiredUnit acquired(*gathered_, 0);
  return model::embed(model::embedding_matrix(layout_, acquired.flat()), ids_N, config_.embedding_factor);
}

void TextWeights::with_block(std::size_t block, const std::function<void(const model::BlockWeights&)>& act) {
  if (!gathered_) return act(blocks_[block]);
  const shard::AcquiredUnit acquired(*gathered_, unit_of(block));
  if (block + 1 < config_.blocks.size()) gathered_->prefetch(unit_of(block) + 1);
  act(packed_block(block, acquired.flat()));
}

at::Tensor TextWeights::logits(const at::Tensor& hidden_ND) {
  if (gathered_) head_ = packed_head(shard::AcquiredUnit(*gathered_, layout_.head_unit()).flat());
  const auto normal_ND = ops::rms_norm(wide(hidden_ND), head_.norm_D, config_.rms_norm_eps).y_ND;
  auto logits_NV = ops::linear_apart(normal_ND, head_.matrix);
  model::bend_logits_(logits_NV, model::logit_rule(config_));
  if (gathered_) head_ = {};
  return logits_NV;
}

}  // namespace retort::eval
