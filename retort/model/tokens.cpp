#include "retort/model/tokens.h"
#include "retort/architecture/rope.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/model/rope.h"

namespace retort::model {
namespace {

// Made on the device, where a copy would cost more than a few additions.
at::Tensor positions_of(std::span<const TextPart> runs, at::Device device) {
  constexpr std::size_t kFewRuns = 32;
  if (runs.size() > kFewRuns || device.is_cpu()) {
    std::vector<std::int64_t> positions;
    for (const auto& run : runs)
      for (std::int64_t i = 0; i < run.count; ++i) positions.push_back(run.position + i);
    return index_tensor(positions, device);
  }
  std::int64_t tokens = 0;
  for (const TextPart& run : runs) tokens += run.count;
  const auto positions_N = at::arange(tokens, at::TensorOptions().dtype(at::kLong).device(device));
  std::int64_t begin = 0;
  for (const TextPart& run : runs) {
    if (run.position != begin) positions_N.narrow(0, begin, run.count).sub_(begin - run.position);
    begin += run.count;
  }
  return positions_N;
}

// Neighbouring runs whose angles are the same make one table.
ops::Rotary tables_of(const architecture::Rope& rope, std::int64_t head_dim, std::int64_t context,
                      std::span<const TextPart> runs, const at::Tensor& positions_N,
                      RopeFrequencies& frequencies) {
  std::vector<at::Tensor> cos_NE2, sin_NE2;
  std::int64_t begin = 0;
  for (auto run = runs.begin(); run != runs.end();) {
    const auto length = run->length;
    std::int64_t count = 0;
    for (; run != runs.end() && same_angles(rope, context, run->length, length); ++run) count += run->count;
    const auto frequencies_R2 = frequencies.of(rope, head_dim, context, length, positions_N.device());
    auto part = ops::rotary_tables(positions_N.narrow(0, begin, count), frequencies_R2,
                                   architecture::rope_factor(rope));
    if (count == positions_N.size(0)) return part;
    cos_NE2.push_back(std::move(part.cos_NE2));
    sin_NE2.push_back(std::move(part.sin_NE2));
    begin += count;
  }
  return {at::cat(cos_NE2), at::cat(sin_NE2)};
}

TokenLayout layout_of(const architecture::Config& config, std::vector<std::int64_t> starts,
                      std::span<const TextPart> runs, at::Device device, RopeFrequencies& frequencies) {
  const auto positions_N = positions_of(runs, device);
  TokenLayout layout{std::move(starts), {}};
  for (const auto& block : config.blocks) {
    if (!block.attention || !block.attention->kind.rope) continue;
    const std::pair key(*block.attention->kind.rope, block.attention->head_dim);
    if (layout.turnings.contains(key)) continue;
    const auto& rope = config.ropes[key.first];
    layout.turnings.emplace(key, Turning{tables_of(rope, key.second, config.max_position_embeddings, runs,
                                                   positions_N, frequencies),
                                         query_factors(rope, positions_N)});
  }
  return layout;
}

}  // namespace

at::Tensor RopeFrequencies::of(const architecture::Rope& rope, std::int64_t head_dim, std::int64_t context,
                               std::int64_t length, at::Device device) {
  // One table for each length would add up.
  if (rope.kind == architecture::Rope::Kind::dynamic && length > context)
    return rope_frequencies(rope, head_dim, context, length).to(device);
  for (const auto& known : known_)
    if (known.rope == rope && known.head_dim == head_dim && known.context == context &&
        same_angles(rope, context, length, known.length) && known.frequencies_R2.device() == device)
      return known.frequencies_R2;
  known_.push_back(
      {rope, head_dim, context, length, rope_frequencies(rope, head_dim, context, length).to(device)});
  return known_.back().frequencies_R2;
}

const Turning* TokenLayout::turning(const architecture::Attention& attention) const {
  return attention.kind.rope ? &turnings.at({*attention.kind.rope, attention.head_dim}) : nullptr;
}

TokenLayout make_token_layout(const architecture::Config& config, std::vector<std::int64_t> starts,
                              at::Device device, RopeFrequencies& frequencies) {
  std::vector<TextPart> runs;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    runs.push_back({0, starts[i + 1] - starts[i], starts[i + 1] - starts[i]});
  return layout_of(config, std::move(starts), runs, device, frequencies);
}

TokenLayout make_token_layout(const architecture::Config& config, std::vector<std::int64_t> starts,
                              at::Device device) {
  RopeFrequencies frequencies;
  return make_token_layout(config, std::move(starts), device, frequencies);
}

TokenLayout layout_of_parts(const architecture::Config& config, std::span<const TextPart> parts,
                            at::Device device, RopeFrequencies& frequencies) {
  std::vector<std::int64_t> starts{0};
  for (const auto& part : parts) starts.push_back(starts.back() + part.count);
  return layout_of(config, std::move(starts), parts, device, frequencies);
}

namespace {

// Memory that is not pinned is copied by the driver before the call returns.  So the call need not wait for
// what the device has yet to do.
template <typename T>
at::Tensor index_tensor_of(std::span<const T> values, at::Device device) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor.to(device, /*non_blocking=*/true);
}

}  // namespace

at::Tensor index_tensor(std::span<const std::int64_t> values, at::Device device) {
  return index_tensor_of(values, device);
}

at::Tensor index_tensor(std::span<const std::int32_t> values, at::Device device) {
  return index_tensor_of(values, device);
}

}  // namespace retort::model
