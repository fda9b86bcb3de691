#pragma once
// What stays of a model: blocks, and of each block KV groups and MLP channels, and hidden features.
// Everything is listed, also where nothing is gone.  Shapes, parameters, masks and slices follow from it.  A
// KV group is one key and value head with the query heads that use it.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/json.h"

namespace retort::architecture {

struct Kept {
  struct Block {
    std::int64_t number = 0;              ///< in the model that it was taken from
    std::vector<std::int64_t> kv_groups;  ///< rising; none: no attention
    std::vector<std::int64_t> channels;   ///< rising, but in a lineage after a permutation; none: no MLP
    bool operator==(const Block&) const = default;
  };
  std::vector<Block> blocks;         ///< rising by number
  std::vector<std::int64_t> hidden;  ///< features, rising

  /// A block by its number; null when it is dropped.
  const Block* find(std::int64_t number) const;
  /// Of the blocks.
  std::vector<std::int64_t> numbers() const;
  bool operator==(const Kept&) const = default;
};

/// 0 to count - 1.
std::vector<std::int64_t> counted(std::int64_t count);

/// All of the model.
Kept whole(const Config& config);
/// Without a block that stays so far.
Kept without_block(const Kept& kept, std::int64_t number);
/// With these of a block that stays so far; a block that has neither KV groups nor channels is dropped.
Kept with_kv_groups(const Kept& kept, std::int64_t number, std::vector<std::int64_t> kv_groups);
Kept with_channels(const Kept& kept, std::int64_t number, std::vector<std::int64_t> channels);

/// The `count` of `numbers` with the highest score (ties: the lower number), rising.  `scores`: by number.
std::vector<std::int64_t> highest(std::vector<std::int64_t> numbers, std::int64_t count,
                                  const std::vector<double>& scores);

/// Rows of the heads in `kv_groups`, when each group has `width` of them.
std::vector<std::int64_t> rows_of(const std::vector<std::int64_t>& kv_groups, std::int64_t width);
/// The inputs of o_proj that a block of the input model keeps; none when it has no attention, or is dropped.
std::vector<std::int64_t> kept_attention(const Config& input, const Kept& kept, std::int64_t number);

/// The configuration of what stays of `input`.  A smaller hidden size makes eps larger in the same
/// proportion, because RMSNorm then divides a sum over the same features by a smaller number.
Config config_of(const Config& input, const Kept& kept);
/// Unique saved parameters.
std::int64_t parameters_of(const Config& input, const Kept& kept);

/// What stays of a part: `then` is relative to the model that `kept` describes, the result to that model's
/// own origin.
Kept composed(const Kept& kept, const Kept& then);

/// {"blocks": [number], "kv_groups": [[number]], "channels": [[number]], "hidden": [number]}, lists by kept
/// block.
base::Json to_json(const Kept& kept);
/// Reads what to_json() writes.  Throws nlohmann::json::exception for something else.
Kept kept_from_json(const base::Json& json);

/// The same for equal ones, on every machine and in every release: a key for stored results.
std::string stable_hash(const Kept& kept);

}  // namespace retort::architecture
