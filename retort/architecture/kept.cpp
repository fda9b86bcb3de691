#include "retort/architecture/kept.h"

#include <algorithm>
#include <numeric>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"

namespace retort::architecture {
namespace {

void feed(base::Hasher& hasher, const std::vector<std::int64_t>& numbers) {
  std::string bytes;
  const auto put = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte)
      bytes += static_cast<char>(value >> (8 * byte) & 0xff);  // little endian everywhere
  };
  put(numbers.size());
  for (const auto number : numbers) put(static_cast<std::uint64_t>(number));
  hasher.update(bytes.data(), bytes.size());
}

// As many query heads stay for each group as it had.
void keep_groups(std::optional<Attention>& attention, std::int64_t groups) {
  if (!attention) return;
  if (groups == 0) return attention.reset();
  attention->num_heads = attention->num_heads / attention->num_kv_heads * groups;
  attention->num_kv_heads = groups;
}

void keep_channels(Mlp& mlp, std::int64_t width) {
  auto* dense = std::get_if<DenseMlp>(&mlp);
  if (!dense) return;
  if (width > 0)
    dense->width = width;
  else
    mlp = std::monostate{};
}

template <typename Blocks>
auto place_of(Blocks& blocks, std::int64_t number) {
  const auto found =
      std::lower_bound(blocks.begin(), blocks.end(), number,
                       [](const Kept::Block& block, std::int64_t wanted) { return block.number < wanted; });
  return found != blocks.end() && found->number == number ? found : blocks.end();
}

Kept with_block(const Kept& kept, Kept::Block block) {
  auto smaller = kept;
  const auto place = place_of(smaller.blocks, block.number);
  base::ensure(place != smaller.blocks.end(), "only a kept block can be made smaller");
  if (block.kv_groups.empty() && block.channels.empty())
    smaller.blocks.erase(place);
  else
    *place = std::move(block);
  return smaller;
}

std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& numbers,
                                 const std::vector<std::int64_t>& places) {
  std::vector<std::int64_t> result;
  for (const auto place : places) result.push_back(numbers.at(static_cast<std::size_t>(place)));
  return result;
}

}  // namespace

const Kept::Block* Kept::find(std::int64_t number) const {
  const auto found = place_of(blocks, number);
  return found != blocks.end() ? &*found : nullptr;
}

std::vector<std::int64_t> Kept::numbers() const {
  std::vector<std::int64_t> numbers;
  for (const auto& block : blocks) numbers.push_back(block.number);
  return numbers;
}

std::vector<std::int64_t> counted(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Kept whole(const Config& config) {
  Kept kept;
  for (const auto& block : config.blocks)
    kept.blocks.push_back({std::ssize(kept.blocks), counted(kv_groups(block)), counted(mlp_width(block))});
  kept.hidden = counted(config.hidden_size);
  return kept;
}

Kept without_block(const Kept& kept, std::int64_t number) {
  return with_block(kept, {number, {}, {}});
}

Kept with_kv_groups(const Kept& kept, std::int64_t number, std::vector<std::int64_t> kv_groups) {
  const auto* block = kept.find(number);
  base::ensure(block != nullptr, "only a kept attention can be narrowed");
  return with_block(kept, {number, std::move(kv_groups), block->channels});
}

Kept with_channels(const Kept& kept, std::int64_t number, std::vector<std::int64_t> channels) {
  const auto* block = kept.find(number);
  base::ensure(block != nullptr, "only a kept MLP can be narrowed");
  return with_block(kept, {number, block->kv_groups, std::move(channels)});
}

std::vector<std::int64_t> highest(std::vector<std::int64_t> numbers, std::int64_t count,
                                  const std::vector<double>& scores) {
  base::ensure(count >= 0 && count <= std::ssize(numbers), "narrowing never widens");
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  numbers.resize(static_cast<std::size_t>(count));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::int64_t> rows_of(const std::vector<std::int64_t>& kv_groups, std::int64_t width) {
  std::vector<std::int64_t> rows;
  for (const auto group : kv_groups)
    for (std::int64_t row = 0; row < width; ++row) rows.push_back(group * width + row);
  return rows;
}

std::vector<std::int64_t> kept_attention(const Config& input, const Kept& kept, std::int64_t number) {
  const auto& shape = input.blocks[static_cast<std::size_t>(number)].attention;
  const auto* block = kept.find(number);
  if (!shape || !block) return {};
  return rows_of(block->kv_groups, shape->num_heads / shape->num_kv_heads * shape->head_dim);
}

Config config_of(const Config& input, const Kept& kept) {
  auto config = input;
  config.blocks.clear();
  if (std::ssize(kept.hidden) < input.hidden_size) {
    config.hidden_size = std::ssize(kept.hidden);
    config.rms_norm_eps *= static_cast<double>(input.hidden_size) / static_cast<double>(config.hidden_size);
  }
  for (const auto& stays : kept.blocks) {
    auto block = input.blocks[static_cast<std::size_t>(stays.number)];
    keep_groups(block.attention, std::ssize(stays.kv_groups));
    keep_channels(block.mlp, std::ssize(stays.channels));
    config.blocks.push_back(std::move(block));
  }
  return config;
}

std::int64_t parameters_of(const Config& input, const Kept& kept) {
  return num_parameters(config_of(input, kept));
}

Kept composed(const Kept& kept, const Kept& then) {
  Kept result;
  for (const auto& block : then.blocks) {
    const auto& origin = kept.blocks.at(static_cast<std::size_t>(block.number));
    result.blocks.push_back(
        {origin.number, chosen(origin.kv_groups, block.kv_groups), chosen(origin.channels, block.channels)});
  }
  result.hidden = chosen(kept.hidden, then.hidden);
  return result;
}

base::Json to_json(const Kept& kept) {
  base::Json json = {{"blocks", base::Json::array()},
                     {"kv_groups", base::Json::array()},
                     {"channels", base::Json::array()},
                     {"hidden", kept.hidden}};
  for (const auto& block : kept.blocks) {
    json["blocks"].push_back(block.number);
    json["kv_groups"].push_back(block.kv_groups);
    json["channels"].push_back(block.channels);
  }
  return json;
}

Kept kept_from_json(const base::Json& json) {
  Kept kept;
  const auto& numbers = json.at("blocks");
  for (std::size_t i = 0; i < numbers.size(); ++i)
    kept.blocks.push_back({numbers.at(i).get<std::int64_t>(),
                           json.at("kv_groups").at(i).get<std::vector<std::int64_t>>(),
                           json.at("channels").at(i).get<std::vector<std::int64_t>>()});
  kept.hidden = json.at("hidden").get<std::vector<std::int64_t>>();
  return kept;
}

std::string stable_hash(const Kept& kept) {
  base::Hasher hasher;
  for (const auto& block : kept.blocks) {
    feed(hasher, {block.number});
    feed(hasher, block.kv_groups);
    feed(hasher, block.channels);
  }
  feed(hasher, kept.hidden);
  return hasher.hex();
}

}  // namespace retort::architecture
