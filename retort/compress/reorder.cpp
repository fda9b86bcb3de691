#include "retort/compress/reorder.h"

#include <ATen/ATen.h>

#include "retort/compress/column_order.h"
#include "retort/model/tokens.h"

namespace retort::compress {
namespace {

using architecture::Role;

const architecture::Unit& unit_of(const architecture::Layout& layout, const architecture::Tensor& layer) {
  return layout.units[layout.find(layer.name)->unit];
}

const architecture::Attention& attention_of(const architecture::Config& config,
                                            const architecture::Unit& unit) {
  return *config.blocks[static_cast<std::size_t>(unit.block_index)].attention;
}

// The inputs of o_proj as [KV group, query head of it, feature].
at::Tensor by_head(const at::Tensor& values_C, const architecture::Attention& attention) {
  return values_C.view({attention.num_kv_heads, -1, attention.head_dim});
}

std::vector<std::int64_t> head_order(const architecture::Attention& attention, const at::Tensor& score_RC,
                                     const model::Pattern& pattern) {
  if (attention.head_dim % pattern.group != 0 || attention.head_dim == pattern.group) return {};
  std::vector<std::int64_t> order;
  const auto place_C = at::arange(score_RC.size(1), at::kLong);
  for (const auto& heads_QF : by_head(place_C, attention).unbind(0)) {
    std::vector<at::Tensor> scores;  // rows of all heads: one order has to serve them
    for (const auto& features_F : heads_QF.unbind(0))
      scores.push_back(score_RC.index_select(1, features_F.to(score_RC.device())));
    const auto features = column_order(at::cat(scores, 0), pattern);
    for (std::int64_t head = 0; head < heads_QF.size(0); ++head)
      for (const auto feature : features) order.push_back(heads_QF[head][0].item<std::int64_t>() + feature);
  }
  return order;
}

// Rows of v_proj: those of the first query head of each group tell the order.
at::Tensor value_rows(const at::Tensor& order_C, const architecture::Attention& attention) {
  const auto feature_GF = by_head(order_C, attention).select(1, 0).remainder(attention.head_dim);
  const auto first_G1 = at::arange(attention.num_kv_heads, order_C.options()).unsqueeze(1);
  return (first_G1 * attention.head_dim + feature_GF).flatten();
}

}  // namespace

std::vector<std::int64_t> input_order(const architecture::Config& config, const architecture::Layout& layout,
                                      const architecture::Tensor& layer, const at::Tensor& score_RC,
                                      const model::Pattern& pattern) {
  if (layer.role == Role::down) return column_order(score_RC, pattern);
  if (layer.role == Role::output)
    return head_order(attention_of(config, unit_of(layout, layer)), score_RC, pattern);
  return {};
}

void reorder_inputs(model::Weights& weights, const architecture::Tensor& layer,
                    const std::vector<std::int64_t>& order) {
  const auto& unit = unit_of(weights.layout, layer);
  const auto reorder = [&](const architecture::Tensor& tensor, std::int64_t dimension,
                           const at::Tensor& places) {
    const auto values = weights.tensor(tensor.name);
    values.copy_(values.index_select(dimension, places));
  };
  const auto reorder_rows = [&](std::initializer_list<Role> roles, const at::Tensor& places) {
    for (const auto role : roles)
      if (const auto* tensor = unit.find(role)) reorder(*tensor, 0, places);
  };
  const auto order_C = model::index_tensor(order, weights.tensor(layer.name).device());
  reorder(layer, 1, order_C);
  if (layer.role == Role::down) {
    reorder_rows({Role::gate, Role::up, Role::gate_bias, Role::up_bias}, order_C);
  } else {
    reorder_rows({Role::value, Role::value_bias}, value_rows(order_C, attention_of(weights.config, unit)));
  }
}

}  // namespace retort::compress
