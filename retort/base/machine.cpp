#include "retort/base/machine.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <string>

namespace retort::base {
namespace {

std::int64_t first_number(const char* path, std::int64_t otherwise) {
  std::ifstream in(path);
  std::int64_t value = 0;
  return in >> value ? value : otherwise;  // "max" is no number: no limit
}

}  // namespace

std::int64_t available_memory_bytes() {
  std::int64_t available = std::numeric_limits<std::int64_t>::max();
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  for (std::int64_t value = 0; in >> key >> value; std::getline(in, unit))
    if (key == "MemAvailable:") available = value * 1024;
  const auto limit = first_number("/sys/fs/cgroup/memory.max", available);
  const auto used = first_number("/sys/fs/cgroup/memory.current", 0);
  return limit < available ? std::min(available, std::max<std::int64_t>(0, limit - used)) : available;
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace retort::base
