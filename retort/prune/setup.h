#pragma once
// What a prune stage works on.

#include <cstdint>
#include <vector>

#include "retort/base/files.h"
#include "retort/calibrate/ranking.h"
#include "retort/calibrate/text.h"
#include "retort/comm/group.h"
#include "retort/model/weights.h"
#include "retort/prune/options.h"
#include "retort/record/observer.h"

namespace retort::prune {

/// Where a prune stage works.
struct PrunePlace {
  base::Path saved_file = {};  ///< every evaluation is appended; empty: none is saved.  Beside it is room for
                               ///< what memory does not hold
  std::int64_t memory = 0;     ///< bytes that the stage may use; 0: not checked
};

/// Everything that a prune stage works on; references live as long as the stage.
struct PruneSetup {
  const model::Weights& input;
  const std::vector<calibrate::SourceText>& sources;
  const PruneOptions& options;
  record::Observer& observer;
  PrunePlace place = {};
  /// Scores of the input's own blocks, such as profile_scores(); null: they are measured.
  const std::vector<calibrate::BlockScores>* given = nullptr;
  /// The ranks that measure candidates: rank 0 searches, the others serve it.  Null: this process alone.
  comm::Group* group = nullptr;
  int threads_of_leader = 0;  ///< while rank 0 computes alone; 0: as many as else

  bool leads() const { return !group || group->rank() == 0; }
};

}  // namespace retort::prune
