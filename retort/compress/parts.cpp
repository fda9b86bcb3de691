#include "retort/compress/parts.h"

#include "retort/base/error.h"

namespace retort::compress {

// Each in a file of parts/.
const Part& kv_groups();
const Part& channels();
const Part& hidden_features();

// The one place that knows which class is behind a kind; the compiler misses a kind that is left out.
const Part& part_of(architecture::PartKind kind) {
  switch (kind) {
    case architecture::PartKind::kv_groups:
      return kv_groups();
    case architecture::PartKind::channels:
      return channels();
    case architecture::PartKind::hidden:
      return hidden_features();
  }
  throw base::InternalError("no such part of a model");
}

std::vector<std::int64_t> kept_places(std::vector<std::int64_t> places, std::int64_t each, std::int64_t count,
                                      const std::vector<std::int64_t>& left) {
  if (each == 0 || std::ssize(left) == count) return places;
  std::vector<bool> stays(static_cast<std::size_t>(count), false);
  for (const auto number : left) stays[static_cast<std::size_t>(number)] = true;
  std::erase_if(places,
                [&](std::int64_t place) { return !stays[static_cast<std::size_t>(place / each % count)]; });
  return places;
}

}  // namespace retort::compress
