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

// Ranks of every machine.
std::int64_t equal_share(const std::vector<int>& nodes) {
  const auto [least, most] = least_and_most(nodes);
  base::require<base::UsageError>(least == most, "shard: expected as many ranks on every machine, found ",
                                  least, " on one and ", most, " on another; start the same number on each.");
  return least;
}

// Ranks of a shard group.
std::int64_t shard_size(const std::vector<int>& nodes, std::int64_t asked) {
  const auto ranks = std::ssize(nodes), of_node = equal_share(nodes), size = asked > 0 ? asked : of_node;
  base::require<base::UsageError>(ranks % size == 0, "shard groups of ", size, " ranks do not divide ", ranks,
                                  " ranks; use a number that does.");
  base::require<base::UsageError>(of_node % size == 0 || size % of_node == 0, "shard groups of ", size,
                                  " ranks lie across machines of ", of_node,
                                  " ranks; use a divisor or a multiple of that number.");
  return size;
}

}  // namespace

RankCounts count_ranks(comm::Group& world, at::Device device) {
  const auto of_machine = least_and_most(world.nodes()).second;
  return {.all = world.size(), .of_machine = of_machine, .of_memory = device.is_cpu() ? of_machine : 1};
}

Groups make_groups(comm::Group& world, std::int64_t ranks_per_shard) {
  const auto nodes = world.nodes();
  std::int64_t size = 0;
  world.together([&] { size = shard_size(nodes, ranks_per_shard); });
  const auto place = place_by_node(nodes, world.rank());
  Groups groups{.world = &world, .shard = {}, .replica = {}, .ahead = true};
  groups.shard = world.split(static_cast<int>(place / size), "shard");
  groups.replica = world.split(groups.shard->rank(), "replica");  // who has the same part elsewhere
  return groups;
}

}  // namespace retort::shard
