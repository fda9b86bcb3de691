#pragma once
// What ranks exchanged while a stage worked, for its result.

#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/comm/group.h"

namespace retort::pipeline {

/// A group and what people read that it is: "all ranks", "student shard".
struct NamedGroup {
  std::string name;
  comm::Group* group;
};

/// Counts the calls of groups from its making on, as this rank saw them.
class Exchanged {
 public:
  /// Of those that have several ranks.  They have to outlive the object.
  explicit Exchanged(const std::vector<NamedGroup>& groups);
  /// By group, operation and size, as docs/formats/stage-results.md has it; null where nothing is counted.
  base::Json json() const;

 private:
  struct Counted {
    NamedGroup of;
    std::vector<comm::CollectiveCount> before;
  };
  std::vector<Counted> groups_;
};

}  // namespace retort::pipeline
