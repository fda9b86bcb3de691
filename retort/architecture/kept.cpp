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
  bytes.reserve(8 * (numbers.size() + 1));
  const auto put = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte)
      bytes += static_cast<char>(value >> (8 * byte) & 0xff);  // little endian everywhere
  };
  put(numbers.size());
  for (const auto number : numbers) put(static_cast<std::uint64_t>(number));
  hasher.update(bytes.data(), bytes.size());
}

// All that a block holds: every key is made of this.
void feed(base::Hasher& hasher, const Kept::Block& block) {
  feed(hasher, std::vector{block.number});
  for_each_part(block, [&](PartKind, const auto& numbers) { feed(hasher, numbers); });
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

void keep(Block& block, PartKind kind, std::int64_t count) {
  switch (kind) {
    case PartKind::kv_groups:
      return keep_groups(block.attention, count);
    case PartKind::channels:
      return keep_channels(block.mlp, count);
    case PartKind::hidden:
      return;  // of all blocks alike
  }
}

std::int64_t count_of(const Block& block, PartKind kind) {
  switch (kind) {
    case PartKind::kv_groups:
      return kv_groups(block);
    case PartKind::channels:
      return mlp_width(block);
    case PartKind::hidden:
      break;
  }
  throw base::InternalError("hidden features are no part of a block");
}

bool holds_nothing(const Kept::Block& block) {
  bool nothing = true;
  for_each_part(block, [&](PartKind, const auto& numbers) { nothing = nothing && numbers.empty(); });
  return nothing;
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
  if (holds_nothing(block))
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

// Long lists are mostly neighbours.
base::Json ranges_json(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kLeast = 3;
  auto json = base::Json::array();
  for (std::size_t first = 0; first < numbers.size();) {
    auto end = first + 1;
    while (end < numbers.size() && numbers[end] - 1 == numbers[end - 1]) ++end;
    if (end - first >= kLeast)
      json.push_back({numbers[first], numbers[end - 1]});
    else
      for (auto i = first; i < end; ++i) json.push_back(numbers[i]);
    first = end;
  }
  return json;
}

// A pair may stand for any number of numbers, and files come from strangers.
std::vector<std::int64_t> numbers_from_json(const base::Json& json, std::int64_t most) {
  std::vector<std::int64_t> numbers;
  for (const auto& item : json.get_ref<const base::Json::array_t&>()) {
    const auto first = item.is_array() ? item.at(0).get<std::int64_t>() : item.get<std::int64_t>();
    const auto last = item.is_array() ? item.at(1).get<std::int64_t>() : first;
    const auto room = most - std::ssize(numbers);
    if (room <= 0 || last < first || first < 0 || last - first >= room)
      throw base::Json::out_of_range::create(401, base::join("a list of kept numbers has more than ", most),
                                             &json);
    // By steps: the last number may be the largest that there is.
    for (std::int64_t step = 0; step <= last - first; ++step) numbers.push_back(first + step);
  }
  return numbers;
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

std::int64_t count_of(const Config& config, PartKind kind, std::int64_t block) {
  if (!half_of(kind)) return config.hidden_size;
  return count_of(config.blocks[static_cast<std::size_t>(block)], kind);
}

std::vector<std::int64_t> numbers_of(const Kept& kept, PartKind kind, std::int64_t block) {
  if (!half_of(kind)) return kept.hidden;
  std::vector<std::int64_t> found;
  if (const auto* stays = kept.find(block))
    for_each_part(*stays, [&](PartKind one, const auto& numbers) {
      if (one == kind) found = numbers;
    });
  return found;
}

Kept whole(const Config& config) {
  Kept kept;
  for (const auto& block : config.blocks) {
    Kept::Block stays;
    stays.number = std::ssize(kept.blocks);
    for_each_part(stays, [&](PartKind kind, auto& numbers) { numbers = counted(count_of(block, kind)); });
    kept.blocks.push_back(std::move(stays));
  }
  kept.hidden = counted(config.hidden_size);
  return kept;
}

Kept without_block(const Kept& kept, std::int64_t number) {
  Kept::Block nothing;
  nothing.number = number;
  return with_block(kept, std::move(nothing));
}

Kept with(const Kept& kept, PartKind kind, std::int64_t block, std::vector<std::int64_t> numbers) {
  const auto half = half_of(kind);
  if (!half) {
    auto smaller = kept;
    smaller.hidden = std::move(numbers);
    return smaller;
  }
  const auto* stays = kept.find(block);
  base::ensure(stays != nullptr, "only a kept block can be narrowed");
  auto changed = *stays;
  for_each_part(changed, [&](PartKind one, auto& list) {
    if (one == kind)
      list = numbers;
    else if (numbers.empty() && half_of(one) == half)
      list.clear();  // its half is gone
  });
  return with_block(kept, std::move(changed));
}

Kept with_kv_groups(const Kept& kept, std::int64_t number, std::vector<std::int64_t> kv_groups) {
  return with(kept, PartKind::kv_groups, number, std::move(kv_groups));
}

Kept with_channels(const Kept& kept, std::int64_t number, std::vector<std::int64_t> channels) {
  return with(kept, PartKind::channels, number, std::move(channels));
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

Config config_of(const Config& input, const Kept& kept) {
  auto config = input;
  config.blocks.clear();
  if (std::ssize(kept.hidden) < input.hidden_size) {
    config.hidden_size = std::ssize(kept.hidden);
    config.rms_norm_eps *= static_cast<double>(input.hidden_size) / static_cast<double>(config.hidden_size);
  }
  for (const auto& stays : kept.blocks) {
    auto block = input.blocks[static_cast<std::size_t>(stays.number)];
    for_each_part(stays, [&](PartKind kind, const auto& numbers) { keep(block, kind, std::ssize(numbers)); });
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
    auto stays = block;
    stays.number = origin.number;
    for_each_part(stays, [&](PartKind kind, auto& numbers) {
      numbers = chosen(numbers_of(kept, kind, origin.number), numbers);
    });
    result.blocks.push_back(std::move(stays));
  }
  result.hidden = chosen(kept.hidden, then.hidden);
  return result;
}

base::Json to_json(const Kept& kept) {
  base::Json json = {{"blocks", base::Json::array()}};
  for (const auto kind : kPartKinds) json[std::string(base::word(kind))] = base::Json::array();
  json[std::string(base::word(PartKind::hidden))] = ranges_json(kept.hidden);
  for (const auto& block : kept.blocks) {
    json["blocks"].push_back(block.number);
    for_each_part(block, [&](PartKind kind, const auto& numbers) {
      json[std::string(base::word(kind))].push_back(ranges_json(numbers));
    });
  }
  return json;
}

Kept kept_from_json(const base::Json& json, std::int64_t most_numbers) {
  Kept kept;
  const auto& numbers = json.at("blocks");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Kept::Block block;
    block.number = numbers.at(i).get<std::int64_t>();
    for_each_part(block, [&](PartKind kind, auto& list) {
      list = numbers_from_json(json.at(std::string(base::word(kind))).at(i), most_numbers);
    });
    kept.blocks.push_back(std::move(block));
  }
  kept.hidden = numbers_from_json(json.at("hidden"), most_numbers);
  return kept;
}

std::string stable_hash(const Kept& kept) {
  base::Hasher hasher;
  for (const auto& block : kept.blocks) feed(hasher, block);
  feed(hasher, kept.hidden);
  return hasher.hex();
}

std::vector<std::string> hashes_before(const Kept& kept, std::int64_t blocks, const std::string& beginning) {
  base::Hasher first;
  first.update(beginning.data(), beginning.size());
  feed(first, kept.hidden);
  std::vector<std::string> hashes{first.hex()};
  for (std::int64_t number = 0; number + 1 < blocks; ++number) {
    base::Hasher next;
    next.update(hashes.back().data(), hashes.back().size());
    if (const auto* block = kept.find(number)) feed(next, *block);
    hashes.push_back(next.hex());
  }
  return hashes;
}

}  // namespace retort::architecture
