#pragma once
// What a profile says of a model in a few numbers; the report draws it.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/json.h"
#include "retort/calibrate/ranking.h"
#include "retort/model/block.h"

namespace retort::calibrate {

/// Magnitudes of the inputs of one linear layer.
struct ProfiledLayer {
  model::Tap tap = model::Tap::qkv_input;
  std::int64_t features = 0;
  double mean = 0, maximum = 0;
  std::vector<std::pair<double, double>> quantiles;  ///< {quantile, its median over the features}
};

struct MassiveChannel {
  std::int64_t channel = 0;
  double maximum = 0, over_median = 0;
};

struct ProfiledBlock {
  std::int64_t block = 0;
  std::vector<ProfiledLayer> layers;
  bool has_mlp = false;  ///< without one there are no channels
  std::vector<std::int64_t> inactive_channels;
  std::vector<MassiveChannel> massive_channels;
};
ProfiledBlock profiled_block(std::int64_t block, const model::BlockWeights& weights,
                             const BlockStatistics& statistics);

struct ProfileResult {
  std::vector<std::pair<std::string, std::int64_t>> sources;  ///< {name, tokens}
  std::int64_t planned_bytes = 0;
  std::vector<ProfiledBlock> blocks;

  std::int64_t tokens() const;
};

/// {name: tokens}
base::Json sources_json(const ProfileResult& result);
/// The result of a stage `profile`.
base::Json to_json(const ProfileResult& result);

}  // namespace retort::calibrate
