#include "retort/compress/candidate.h"

#include <algorithm>
#include <numeric>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"

namespace retort::compress {
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
void keep_groups(std::optional<architecture::Attention>& attention, std::int64_t groups) {
  if (groups == 0) return attention.reset();
  attention->num_heads = attention->num_heads / attention->num_kv_heads * groups;
  attention->num_kv_heads = groups;
}

}  // namespace

const std::vector<std::int64_t>* Candidate::find(std::int64_t block) const {
  const auto found = std::lower_bound(blocks.begin(), blocks.end(), block);
  return found != blocks.end() && *found == block
             ? &channels[static_cast<std::size_t>(found - blocks.begin())]
             : nullptr;
}

bool Candidate::attends(std::int64_t block) const {
  const auto found = groups.find(block);
  return found == groups.end() || !found->second.empty();
}

std::vector<std::int64_t> counted(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<std::int64_t> kept_groups(const architecture::Config& input, const Candidate& candidate,
                                      std::int64_t block) {
  if (!candidate.find(block)) return {};
  const auto found = candidate.groups.find(block);
  return found != candidate.groups.end() ? found->second
                                         : counted(kv_groups(input.blocks[static_cast<std::size_t>(block)]));
}

std::vector<std::int64_t> rows_of(const std::vector<std::int64_t>& groups, std::int64_t width) {
  std::vector<std::int64_t> rows;
  for (const auto group : groups)
    for (std::int64_t row = 0; row < width; ++row) rows.push_back(group * width + row);
  return rows;
}

std::vector<std::int64_t> kept_attention(const architecture::Config& input, const Candidate& candidate,
                                         std::int64_t block) {
  const auto& shape = input.blocks[static_cast<std::size_t>(block)].attention;
  if (!shape) return {};
  return rows_of(kept_groups(input, candidate, block),
                 shape->num_heads / shape->num_kv_heads * shape->head_dim);
}

Candidate whole(const architecture::Config& config) {
  Candidate candidate;
  for (const auto& block : config.blocks) {
    candidate.blocks.push_back(static_cast<std::int64_t>(candidate.blocks.size()));
    candidate.channels.push_back(counted(mlp_width(block)));
  }
  return candidate;
}

Candidate without_block(const Candidate& candidate, std::int64_t block) {
  auto smaller = candidate;
  const auto found = std::lower_bound(smaller.blocks.begin(), smaller.blocks.end(), block);
  base::ensure(found != smaller.blocks.end() && *found == block, "only a kept block can be dropped");
  smaller.channels.erase(smaller.channels.begin() + (found - smaller.blocks.begin()));
  smaller.blocks.erase(found);
  smaller.groups.erase(block);
  return smaller;
}

Candidate with_groups(const architecture::Config& input, const Candidate& candidate, std::int64_t block,
                      std::vector<std::int64_t> groups) {
  const auto* channels = candidate.find(block);
  base::ensure(channels != nullptr, "only a kept attention can be narrowed");
  if (groups.empty() && channels->empty()) return without_block(candidate, block);
  auto smaller = candidate;
  if (std::ssize(groups) < kv_groups(input.blocks[static_cast<std::size_t>(block)]))
    smaller.groups[block] = std::move(groups);
  else
    smaller.groups.erase(block);
  return smaller;
}

Candidate with_channels(const architecture::Config& input, const Candidate& candidate, std::int64_t block,
                        std::vector<std::int64_t> channels) {
  base::ensure(candidate.find(block) != nullptr, "only a kept MLP can be narrowed");
  if (channels.empty() && kept_groups(input, candidate, block).empty())
    return without_block(candidate, block);
  auto smaller = candidate;
  const auto place =
      std::lower_bound(smaller.blocks.begin(), smaller.blocks.end(), block) - smaller.blocks.begin();
  smaller.channels[static_cast<std::size_t>(place)] = std::move(channels);
  return smaller;
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

Candidate narrowed(const Candidate& candidate, std::int64_t width,
                   const std::vector<std::vector<double>>& scores) {
  auto narrow = candidate;
  for (std::size_t i = 0; i < narrow.blocks.size(); ++i) {
    auto& channels = narrow.channels[i];
    channels = highest(std::move(channels), width, scores[static_cast<std::size_t>(narrow.blocks[i])]);
  }
  return narrow;
}

architecture::Config config_of(const architecture::Config& input, const Candidate& candidate) {
  auto config = input;
  config.blocks.clear();
  if (!candidate.hidden.empty()) {
    config.hidden_size = std::ssize(candidate.hidden);
    config.rms_norm_eps *= static_cast<double>(input.hidden_size) / static_cast<double>(config.hidden_size);
  }
  for (std::size_t i = 0; i < candidate.blocks.size(); ++i) {
    auto block = input.blocks[static_cast<std::size_t>(candidate.blocks[i])];
    if (const auto kept = candidate.groups.find(candidate.blocks[i]); kept != candidate.groups.end())
      keep_groups(block.attention, std::ssize(kept->second));
    if (auto* dense = std::get_if<architecture::DenseMlp>(&block.mlp))
      dense->width = static_cast<std::int64_t>(candidate.channels[i].size());
    if (mlp_width(block) == 0 && std::holds_alternative<architecture::DenseMlp>(block.mlp))
      block.mlp = std::monostate{};
    config.blocks.push_back(std::move(block));
  }
  return config;
}

std::int64_t parameters_of(const architecture::Config& input, const Candidate& candidate) {
  return architecture::num_parameters(config_of(input, candidate));
}

std::string stable_hash(const Candidate& candidate) {
  base::Hasher hasher;
  feed(hasher, candidate.blocks);
  for (const auto& channels : candidate.channels) feed(hasher, channels);
  for (const auto& [block, groups] : candidate.groups) {
    feed(hasher, {block});
    feed(hasher, groups);
  }
  if (!candidate.hidden.empty()) feed(hasher, candidate.hidden);
  return hasher.hex();
}

}  // namespace retort::compress
