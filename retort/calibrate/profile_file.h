#pragma once
// The statistics of one block on disk; docs/formats/profile.md describes them.

#include <array>
#include <string>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/calibrate/input_statistics.h"
#include "retort/calibrate/ranking.h"
#include "retort/model/block.h"

namespace retort::calibrate {

/// "qkv_input" and so on.
const char* name(model::Tap tap);

/// "block-00007.safetensors"
std::string profile_file_name(std::int64_t block);

/// Throws StorageError.
void write_block_profile(const base::Path& path, const BlockStatistics& statistics);

/// Reads Hessian sums only for the taps that are ranked by obs.  Throws StorageError, ModelError
/// for a file that holds something else.
BlockStatistics read_block_profile(const base::Path& path, const RankingOptions& options);

/// Written last: a directory that has it is complete.
inline constexpr const char* kProfileDescription = "profile.json";

/// The description of a finished profile.  Throws UsageError when `directory` holds none, ModelError when it
/// is damaged or a file that it promises is not the one that was written.
base::Json read_profile_description(const base::Path& directory);

/// Scores from a profile, block after block, instead of a pass over text.  `weights` is the model that was
/// profiled.  Throws UsageError for taylor, whose gradients a profile does not hold, and for a profile of a
/// model with other blocks; else as read_block_profile.
std::vector<BlockScores> profile_scores(const base::Path& directory, const model::Weights& weights,
                                        const RankingOptions& options);

}  // namespace retort::calibrate
