#pragma once
// What text says, when each rank has taken a part of it.
//
// Sums are added in the order of ranks, so those of another number of ranks differ by rounding in float64,
// unless agree_on_units() made them exact.

#include <cstdint>
#include <vector>

#include "retort/calibrate/hessian.h"
#include "retort/calibrate/input_statistics.h"
#include "retort/calibrate/loss_increase.h"
#include "retort/calibrate/text.h"
#include "retort/comm/group.h"

namespace retort::calibrate {

/// Makes the sums over a text the same for any number of ranks: units are chosen by the sums that the first
/// rank with any has so far, which shall be of the text's first batch alone.  Collective.
void agree_on_units(comm::Group& group, HessianSums& sums, std::int64_t columns,
                    const at::TensorOptions& inputs);
/// Replaces the sums of this rank's text, which may be of none, by those of all text.  `inputs` says type and
/// device of a layer's inputs.  Collective.
void sum_over_ranks(comm::Group& group, HessianSums& sums, std::int64_t columns,
                    const at::TensorOptions& inputs);
/// The same of statistics, whose scale_I is there unless the block has no such layer.  A gradient is none of
/// them.  Collective.
void sum_over_ranks(comm::Group& group, InputStatistics& statistics, const at::TensorOptions& inputs);
/// The same of documents: those of this rank's batches, which lie between those of its neighbours in the
/// text, become those of all.  Collective.
void join_over_ranks(comm::Group& group, const std::vector<Batch>& batches,
                     std::vector<DocumentSums>& documents);

}  // namespace retort::calibrate
