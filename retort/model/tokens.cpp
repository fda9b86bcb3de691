#include "retort/model/tokens.h"

#include <ATen/ATen.h>

namespace retort::model {
namespace {

std::map<std::int64_t, ops::Rotary> rotary_of(const architecture::Config& config,
                                              const at::Tensor& positions_N) {
  std::map<std::int64_t, ops::Rotary> tables;
  for (const auto& block : config.blocks)
    if (block.attention && !tables.contains(block.attention->head_dim))
      tables.emplace(block.attention->head_dim,
                     ops::rotary_tables(positions_N, block.attention->head_dim, config.rope_theta));
  return tables;
}

}  // namespace

TokenLayout make_token_layout(const architecture::Config& config, std::vector<std::int64_t> starts,
                              at::Device device) {
  auto positions_N = at::arange(starts.back(), at::TensorOptions().dtype(at::kLong));
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    positions_N.narrow(0, starts[i], starts[i + 1] - starts[i]).sub_(starts[i]);
  return {std::move(starts), rotary_of(config, positions_N.to(device))};
}

TokenLayout token_layout_from(const architecture::Config& config, std::int64_t position, std::int64_t count,
                              at::Device device) {
  const auto positions_N =
      at::arange(position, position + count, at::TensorOptions().dtype(at::kLong)).to(device);
  return {{0, count}, rotary_of(config, positions_N)};
}

TokenLayout part_of(const TokenLayout& layout, std::int64_t position, std::int64_t count) {
  TokenLayout part{{0, count}, {}};
  for (const auto& [head_dim, tables] : layout.rotary)
    part.rotary.emplace(head_dim, ops::Rotary{tables.cos_NE2.narrow(0, position, count),
                                              tables.sin_NE2.narrow(0, position, count)});
  return part;
}

at::Tensor index_tensor(std::span<const std::int64_t> values, at::Device device) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor.to(device);
}

at::Tensor index_tensor(std::span<const std::int32_t> values, at::Device device) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor.to(device);
}

}  // namespace retort::model
