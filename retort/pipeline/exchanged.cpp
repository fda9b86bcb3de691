#include "retort/pipeline/exchanged.h"

#include "retort/record/keys.h"

namespace retort::pipeline {

namespace keys = record::keys;

Exchanged::Exchanged(const std::vector<NamedGroup>& groups) {
  for (const auto& of : groups)
    if (of.group->size() > 1) groups_.push_back({of, of.group->log().counts()});
}

base::Json Exchanged::json() const {
  base::Json collectives;
  for (const auto& [of, before] : groups_) {
    const auto ranks = of.group->size();
    for (const auto& count : comm::since(before, of.group->log().counts()))
      collectives.push_back({{keys::kGroup, of.name},
                             {keys::kRanks, ranks},
                             {keys::kOperation, base::word(count.op)},
                             {keys::kBytes, count.bytes},
                             {keys::kCalls, count.calls},
                             {keys::kMovedBytes, count.moved_bytes},
                             {keys::kRingBytes, count.calls * comm::ring_bytes(count.op, count.bytes, ranks)},
                             {keys::kSeconds, count.seconds},
                             {keys::kExposedSeconds, count.exposed_seconds}});
  }
  return collectives;
}

}  // namespace retort::pipeline
