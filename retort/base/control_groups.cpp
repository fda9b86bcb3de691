#include "retort/base/control_groups.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>

namespace retort::base {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// What the two versions call the same things.
struct Version {
  std::array<const char*, 2> limits;
  const char* usage;
  std::array<const char*, 3> reclaimable;  // in memory.stat: caches of this group and of those below it
};
constexpr Version kFirst{
    {"memory.limit_in_bytes", ""}, "memory.usage_in_bytes", {"total_inactive_file", "total_active_file", ""}};
constexpr Version kSecond{
    {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file", "slab_reclaimable"}};

// Where a hierarchy is mounted, and the group that is seen there: in a container it is not the topmost.
struct Mount {
  Path directory;
  std::string top;
};

struct Hierarchies {
  std::optional<Mount> first, second;
};

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// Line: id parent device top directory options [tags] - type source superoptions.
Hierarchies mounted(const Path& root) {
  Hierarchies found;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string id, parent, device, top, directory, type, source, options;
    before >> id >> parent >> device >> top >> directory;
    after >> type >> source >> options;
    const Mount mount{root / Path(directory).relative_path(), top};
    if (type == "cgroup2") found.second = mount;
    if (type == "cgroup" && has_word(options, "memory")) found.first = mount;
  }
  return found;
}

// The group of this process in each hierarchy.  Line: number:controllers:path; version 2 has no controllers.
struct Groups {
  std::string first, second;
};

Groups own_groups(const Path& root) {
  Groups groups;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto one = line.find(':'), two = line.find(':', one + 1);
    if (two == std::string::npos) continue;
    const auto controllers = line.substr(one + 1, two - one - 1);
    if (controllers.empty()) groups.second = line.substr(two + 1);
    if (has_word(controllers, "memory")) groups.first = line.substr(two + 1);
  }
  return groups;
}

// Of a file with one number; nothing for "max", which is no number, and for a file that is not there.
std::optional<std::int64_t> number_in(const Path& file) {
  std::ifstream in(file);
  std::int64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

std::map<std::string, std::int64_t> statistics(const Path& group) {
  std::map<std::string, std::int64_t> values;
  std::ifstream in(group / "memory.stat");
  std::string key;
  for (std::int64_t value = 0; in >> key >> value;) values[key] = value;
  return values;
}

std::int64_t left_by(const Path& group, const Version& version) {
  auto stat = statistics(group);
  std::int64_t limit = kNoLimit;
  for (const char* name : version.limits)
    if (*name) limit = std::min(limit, number_in(group / name).value_or(kNoLimit));
  // Version 1 says here what the groups above allow, also those that a container does not see.
  if (const auto found = stat.find("hierarchical_memory_limit"); found != stat.end())
    limit = std::min(limit, found->second);
  if (limit == kNoLimit) return kNoLimit;
  std::int64_t used = number_in(group / version.usage).value_or(0);
  for (const char* name : version.reclaimable) used -= stat[name];
  return std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, used));
}

// The least of a group and those above it, as far as they are mounted.
std::int64_t left_in(const Mount& mount, const std::string& own, const Version& version) {
  const bool inside = own == mount.top || own.starts_with(mount.top + "/");
  const auto below = Path(inside ? own.substr(mount.top.size()) : own).relative_path();
  Path group = mount.directory;
  if (!below.empty() && *below.begin() != "..") group /= below;
  std::int64_t left = kNoLimit;
  for (;; group = group.parent_path()) {
    left = std::min(left, left_by(group, version));
    if (group == mount.directory || !group.has_relative_path()) return left;
    // A group of version 1 may say that those below it do not count.
    if (number_in(group.parent_path() / "memory.use_hierarchy") == 0) return left;
  }
}

}  // namespace

std::int64_t memory_left_by_control_groups(const Path& root) {
  const auto mounts = mounted(root);
  const auto groups = own_groups(root);
  std::int64_t left = kNoLimit;
  if (mounts.first) left = std::min(left, left_in(*mounts.first, groups.first, kFirst));
  if (mounts.second) left = std::min(left, left_in(*mounts.second, groups.second, kSecond));
  return left;
}

}  // namespace retort::base
