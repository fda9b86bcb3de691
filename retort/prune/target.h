#pragma once
// How far a search goes, and by which steps.

#include <cstdint>

#include "retort/architecture/config.h"
#include "retort/prune/options.h"

namespace retort::prune {

/// Where nobody names a multiple: the least one of kUsualWidthMultiple by which the widest MLP has at most 64
/// widths, so that a search takes no more steps on a wide model than on a small one.
std::int64_t usual_width_multiple(const architecture::Config& input);

/// Throws UsageError where options would remove a part that a model like this has to keep.
void require_removable(const architecture::Config& input, const PruneOptions& options);

/// The target as a number of parameters, of a time about; size.h has the target itself.  Throws UsageError,
/// with the reachable range, for one that no sequence of steps reaches, and for options that exclude each
/// other or do not fit the model.
std::int64_t target_parameters(const architecture::Config& input, const PruneOptions& options);

}  // namespace retort::prune
