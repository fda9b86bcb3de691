#pragma once
// What generation_config.json of a model says of its texts: where they end, and how their tokens are drawn.

#include <cstdint>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/eval/options.h"

namespace retort::eval {

/// End-of-text ids of a model directory: those of generation_config.json where it names any, else of the
/// configuration.  Throws ModelError when that file is not what it should be.
std::vector<std::int32_t> end_of_text_ids(const base::Path& directory, const architecture::Config& config);

/// How its makers draw tokens: greedy unless the file says do_sample.  Without the file, or a key of it, the
/// defaults of Sampling.  Throws ModelError as end_of_text_ids.
Sampling default_sampling(const base::Path& directory);

}  // namespace retort::eval
