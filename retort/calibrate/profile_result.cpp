#include "retort/calibrate/profile_result.h"

#include <ATen/ATen.h>

#include <array>

#include "retort/calibrate/histogram.h"
#include "retort/calibrate/profile_file.h"
#include "retort/record/keys.h"

namespace retort::calibrate {
namespace {

namespace keys = record::keys;

constexpr std::array kQuantiles = {0.5, 0.99, 0.999};

ProfiledLayer profiled_layer(model::Tap tap, const InputStatistics& of) {
  const auto scale_I = at::where(of.scale_I.gt(0), of.scale_I, at::ones_like(of.scale_I));
  ProfiledLayer layer{.tap = tap,
                      .features = of.absolute_I.numel(),
                      .mean = of.absolute_I.mean().item<double>() / static_cast<double>(of.tokens),
                      .maximum = of.maximum_I.max().item<double>(),
                      .quantiles = {}};
  for (const auto quantile : kQuantiles)
    layer.quantiles.emplace_back(
        quantile, (magnitude_quantile(of.counts_IB, quantile) / scale_I).median().item<double>());
  return layer;
}

std::vector<std::int64_t> listed(const at::Tensor& chosen_I) {
  const auto indices = chosen_I.nonzero().view(-1).contiguous();
  const auto* begin = indices.const_data_ptr<std::int64_t>();
  return {begin, begin + indices.numel()};
}

base::Json to_json(const ProfiledLayer& layer) {
  base::Json json = {
      {keys::kFeatures, layer.features}, {keys::kMean, layer.mean}, {keys::kMaximum, layer.maximum}};
  for (const auto& [quantile, magnitude] : layer.quantiles)
    json[keys::kQuantiles].push_back(base::Json::array({quantile, magnitude}));
  return json;
}

base::Json to_json(const ProfiledBlock& block) {
  base::Json json = {{keys::kBlock, block.block}, {keys::kTaps, base::Json::object()}};
  for (const auto& layer : block.layers) json[keys::kTaps][name(layer.tap)] = to_json(layer);
  if (!block.has_mlp) return json;
  json[keys::kInactiveChannels] = block.inactive_channels;
  for (const auto& channel : block.massive_channels)
    json[keys::kMassiveChannels].push_back({{keys::kChannel, channel.channel},
                                            {keys::kMaximum, channel.maximum},
                                            {keys::kOverMedian, channel.over_median}});
  return json;
}

}  // namespace

ProfiledBlock profiled_block(std::int64_t block, const model::BlockWeights& weights,
                             const BlockStatistics& statistics) {
  ProfiledBlock profiled{.block = block, .layers = {}, .inactive_channels = {}, .massive_channels = {}};
  for (const auto tap : kTaps)
    if (statistics[tap].tokens > 0) profiled.layers.push_back(profiled_layer(tap, statistics[tap]));
  const auto& down = statistics[model::Tap::down_input];
  profiled.has_mlp = down.tokens > 0;
  if (!profiled.has_mlp) return profiled;
  const auto down_DI = weights.down_DI.to(at::kCPU);
  profiled.inactive_channels = listed(inactive_channels(down, down_DI));
  const auto median = down.maximum_I.median().item<double>();
  for (const auto channel : listed(massive_channels(down, down_DI))) {
    const auto maximum = down.maximum_I[channel].item<double>();
    profiled.massive_channels.push_back({channel, maximum, median > 0 ? maximum / median : 0});
  }
  return profiled;
}

std::int64_t ProfileResult::tokens() const {
  std::int64_t sum = 0;
  for (const auto& [name, tokens] : sources) sum += tokens;
  return sum;
}

base::Json sources_json(const ProfileResult& result) {
  auto json = base::Json::object();
  for (const auto& [name, tokens] : result.sources) json[name] = tokens;
  return json;
}

base::Json to_json(const ProfileResult& result) {
  base::Json json = {{keys::kKind, "profile"},
                     {keys::kTokens, result.tokens()},
                     {keys::kDomains, sources_json(result)},
                     {keys::kMemoryPlannedBytes, result.planned_bytes},
                     {keys::kBlocks, base::Json::array()}};
  for (const auto& block : result.blocks) json[keys::kBlocks].push_back(to_json(block));
  return json;
}

}  // namespace retort::calibrate
