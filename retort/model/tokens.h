#pragma once
// A row of packed tokens as the blocks see it.
//
// Shape legend: N tokens of all sequences of a micro-batch, one after the other.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/ops/elementwise.h"

namespace retort::model {

/// Where documents start and at which position each token stands; attention stays inside a segment.
struct TokenLayout {
  std::vector<std::int64_t> starts;            ///< first token of each segment, rising from 0; last N
  std::map<std::int64_t, ops::Rotary> rotary;  ///< by head_dim

  std::int64_t tokens() const { return starts.back(); }
};

/// `starts` as in TokenLayout; positions begin at 0 in each segment.
TokenLayout make_token_layout(const architecture::Config& config, std::vector<std::int64_t> starts,
                              at::Device device);
/// One segment whose first token stands at `position`.
TokenLayout token_layout_from(const architecture::Config& config, std::int64_t position, std::int64_t count,
                              at::Device device);

/// `count` tokens of a layout that is one segment, from the one at `position`; views of its tables.
TokenLayout part_of(const TokenLayout& layout, std::int64_t position, std::int64_t count);

/// int64 tensor on a device.
at::Tensor index_tensor(std::span<const std::int64_t> values, at::Device device);
at::Tensor index_tensor(std::span<const std::int32_t> values, at::Device device);

}  // namespace retort::model
