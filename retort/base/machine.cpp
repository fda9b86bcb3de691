#include "retort/base/machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <string>

#include "retort/base/control_groups.h"

namespace retort::base {

std::int64_t available_memory_bytes(const Path& root) {
  std::int64_t available = std::numeric_limits<std::int64_t>::max();
  std::ifstream in(root / "proc/meminfo");
  std::string key, unit;
  for (std::int64_t value = 0; in >> key >> value; std::getline(in, unit))
    if (key == "MemAvailable:") available = value * 1024;
  return std::min(available, memory_left_by_control_groups(root));
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace retort::base
