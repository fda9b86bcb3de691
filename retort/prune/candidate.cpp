#include "retort/prune/candidate.h"

#include <algorithm>
#include <numeric>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"

namespace retort::prune {
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

}  // namespace

const std::vector<std::int64_t>* Candidate::find(std::int64_t block) const {
  const auto found = std::lower_bound(blocks.begin(), blocks.end(), block);
  return found != blocks.end() && *found == block
             ? &channels[static_cast<std::size_t>(found - blocks.begin())]
             : nullptr;
}

bool Candidate::attends(std::int64_t block) const {
  return !std::binary_search(without_attention.begin(), without_attention.end(), block);
}

std::int64_t mlp_width(const architecture::Block& block) {
  const auto* dense = std::get_if<architecture::DenseMlp>(&block.mlp);
  return dense ? dense->width : 0;
}

Candidate whole(const architecture::Config& config) {
  Candidate candidate;
  for (const auto& block : config.blocks) {
    candidate.blocks.push_back(static_cast<std::int64_t>(candidate.blocks.size()));
    auto& channels = candidate.channels.emplace_back(static_cast<std::size_t>(mlp_width(block)));
    std::iota(channels.begin(), channels.end(), 0);
  }
  return candidate;
}

Candidate without_block(const Candidate& candidate, std::int64_t block) {
  auto smaller = candidate;
  const auto found = std::lower_bound(smaller.blocks.begin(), smaller.blocks.end(), block);
  base::ensure(found != smaller.blocks.end() && *found == block, "only a kept block can be dropped");
  smaller.channels.erase(smaller.channels.begin() + (found - smaller.blocks.begin()));
  smaller.blocks.erase(found);
  std::erase(smaller.without_attention, block);
  return smaller;
}

Candidate without_attention(const architecture::Config& input, const Candidate& candidate,
                            std::int64_t block) {
  const auto* channels = candidate.find(block);
  base::ensure(channels != nullptr && candidate.attends(block), "only a kept attention can be dropped");
  if (channels->empty()) return without_block(candidate, block);
  auto smaller = candidate;
  if (input.blocks[static_cast<std::size_t>(block)].attention)
    smaller.without_attention.insert(
        std::lower_bound(smaller.without_attention.begin(), smaller.without_attention.end(), block), block);
  return smaller;
}

Candidate with_channels(const architecture::Config& input, const Candidate& candidate, std::int64_t block,
                        std::vector<std::int64_t> channels) {
  base::ensure(candidate.find(block) != nullptr, "only a kept MLP can be narrowed");
  const bool attends = input.blocks[static_cast<std::size_t>(block)].attention && candidate.attends(block);
  if (channels.empty() && !attends) return without_block(candidate, block);
  auto smaller = candidate;
  const auto place =
      std::lower_bound(smaller.blocks.begin(), smaller.blocks.end(), block) - smaller.blocks.begin();
  smaller.channels[static_cast<std::size_t>(place)] = std::move(channels);
  return smaller;
}

Candidate narrowed(const Candidate& candidate, std::int64_t width,
                   const std::vector<std::vector<double>>& scores) {
  auto narrow = candidate;
  for (std::size_t i = 0; i < narrow.blocks.size(); ++i) {
    const auto& score = scores[static_cast<std::size_t>(narrow.blocks[i])];
    auto& channels = narrow.channels[i];
    base::ensure(width >= 0 && width <= static_cast<std::int64_t>(channels.size()), "narrowing never widens");
    std::stable_sort(channels.begin(), channels.end(), [&](std::int64_t a, std::int64_t b) {
      return score[static_cast<std::size_t>(a)] > score[static_cast<std::size_t>(b)];
    });
    channels.resize(static_cast<std::size_t>(width));
    std::sort(channels.begin(), channels.end());
  }
  return narrow;
}

architecture::Config config_of(const architecture::Config& input, const Candidate& candidate) {
  auto config = input;
  config.blocks.clear();
  for (std::size_t i = 0; i < candidate.blocks.size(); ++i) {
    auto block = input.blocks[static_cast<std::size_t>(candidate.blocks[i])];
    if (!candidate.attends(candidate.blocks[i])) block.attention.reset();
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
  if (!candidate.without_attention.empty()) feed(hasher, candidate.without_attention);
  return hasher.hex();
}

}  // namespace retort::prune
