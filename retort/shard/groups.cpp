#include "retort/shard/groups.h"

#include <algorithm>
#include <map>

#include "retort/base/error.h"

namespace retort::shard {
namespace {

// Where a rank stands when those of one machine stand beside each other.
std::int64_t place_by_node(const std::vector<int>& nodes, int rank) {
  const auto own = nodes[static_cast<std::size_t>(rank)];
  std::int64_t before = std::ranges::count_if(nodes, [&](int node) { return node < own; });
  return before + std::count(nodes.begin(), nodes.begin() + rank, own);
}

std::pair<std::int64_t, std::int64_t> least_and_most(const std::vector<int>& nodes) {
  std::map<int, std::int64_t> counts;
  for (const int node : nodes) ++counts[node];
  const auto [least, most] =
      std::ranges::minmax_element(counts, {}, [](const auto& entry) { return entry.second; });
  return {least->second, most->second};
}

RankCounts counts_of(const std::vector<int>& nodes) {
  const auto [least, most] = least_and_most(nodes);
  return {.all = std::ssize(nodes), .of_machine = most, .least_of_machine = least};
}

}  // namespace

RankCounts count_ranks(comm::Group& world, at::Device device) {
  auto counts = counts_of(world.nodes());
  if (device.is_cpu()) counts.of_memory = counts.of_machine;
  if (world.has_common_memory())
    counts.of_common_memory = counts.of_memory;
  else
    counts.copies_of_machine = counts.of_machine;
  return counts;
}

std::int64_t shard_size(const RankCounts& ranks, std::int64_t asked) {
  if (ranks.all == 1) return 1;
  const auto of_machine = ranks.of_machine;
  const auto size = asked > 0 ? asked : asked < 0 ? ranks.all : of_machine;
  base::require<base::UsageError>(
      of_machine == ranks.least_of_machine, "shard: expected as many ranks on every machine, found ",
      ranks.least_of_machine, " on one and ", of_machine, " on another; start the same number on each.");
  base::require<base::UsageError>(ranks.all % size == 0, "shard groups of ", size, " ranks do not divide ",
                                  ranks.all, " ranks; use a number that does.");
  base::require<base::UsageError>(of_machine % size == 0 || size % of_machine == 0, "shard groups of ", size,
                                  " ranks lie across machines of ", of_machine,
                                  " ranks; use a divisor or a multiple of that number.");
  return size;
}

Groups make_groups(comm::Group& world, std::int64_t ranks_per_shard) {
  const auto nodes = world.nodes();
  std::int64_t size = 0;
  world.together([&] { size = shard_size(counts_of(nodes), ranks_per_shard); });
  const auto place = place_by_node(nodes, world.rank());
  Groups groups{.world = &world, .shard = {}, .replica = {}, .ahead = true};
  groups.shard = world.split(static_cast<int>(place / size), "shard");
  groups.replica = world.split(groups.shard->rank(), "replica");  // who has the same part elsewhere
  return groups;
}

}  // namespace retort::shard
