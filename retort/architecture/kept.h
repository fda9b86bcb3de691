#pragma once
// What stays of a model: blocks, and of each block KV groups and MLP channels, and hidden features.
// Everything is listed, also where nothing is gone.  Shapes, parameters, masks and slices follow from it.  A
// KV group is one key and value head with the query heads that use it.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/architecture/options.h"
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

/// Calls visit(kind, numbers) for each list of a block: keys, files and comparisons are made of it.  The
/// binding names all members, so one that is added does not compile before it has its line here.
template <typename Block, typename Visit>
void for_each_part(Block& block, Visit visit) {
  auto& [number, kv_groups, channels] = block;
  visit(PartKind::kv_groups, kv_groups);
  visit(PartKind::channels, channels);
}

/// 0 to count - 1.
std::vector<std::int64_t> counted(std::int64_t count);

/// Counts how many of a part a model has, or its block where the part is of blocks.
std::int64_t count_of(const Config& config, PartKind kind, std::int64_t block);
/// The numbers of those that stay; none where the block is gone.
std::vector<std::int64_t> numbers_of(const Kept& kept, PartKind kind, std::int64_t block);

/// All of the model.
Kept whole(const Config& config);
/// Without a block that stays so far.
Kept without_block(const Kept& kept, std::int64_t number);
/// With these of a part, in a block that stays so far.  Without any, the half of the block is gone; a block
/// without both halves is dropped.
Kept with(const Kept& kept, PartKind kind, std::int64_t block, std::vector<std::int64_t> numbers);
Kept with_kv_groups(const Kept& kept, std::int64_t number, std::vector<std::int64_t> kv_groups);
Kept with_channels(const Kept& kept, std::int64_t number, std::vector<std::int64_t> channels);

/// The `count` of `numbers` with the highest score (ties: the lower number), rising.  `scores`: by number.
std::vector<std::int64_t> highest(std::vector<std::int64_t> numbers, std::int64_t count,
                                  const std::vector<double>& scores);

/// The configuration of what stays of `input`.  A smaller hidden size makes eps larger in the same
/// proportion, because RMSNorm then divides a sum over the same features by a smaller number.
Config config_of(const Config& input, const Kept& kept);
/// Unique saved parameters.
std::int64_t parameters_of(const Config& input, const Kept& kept);

/// What stays of a part: `then` is relative to the model that `kept` describes, the result to that model's
/// own origin.
Kept composed(const Kept& kept, const Kept& then);

/// {"blocks": [number], "kv_groups": [[number]], "channels": [[number]], "hidden": [number]}, lists by kept
/// block.  Three numbers or more that follow each other are a pair of the first and the last: [[0, 8191]].
base::Json to_json(const Kept& kept);
/// Reads what to_json() writes, and plain lists of numbers.  Throws nlohmann::json::exception for something
/// else, and where the lists of a block, or of hidden features, have more than `most_numbers`.
Kept kept_from_json(const base::Json& json, std::int64_t most_numbers = std::int64_t{1} << 24);

/// The same for equal ones, on every machine and in every release: a key for stored results.
std::string stable_hash(const Kept& kept);
/// For each of the input's `blocks` blocks, a key of all that its inputs depend on: `beginning`, the hidden
/// features and what stays of the blocks before it.
std::vector<std::string> hashes_before(const Kept& kept, std::int64_t blocks, const std::string& beginning);

}  // namespace retort::architecture
