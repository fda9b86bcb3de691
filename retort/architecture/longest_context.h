#pragma once
// How long a text may be.

#include <cstdint>

#include "retort/architecture/config.h"

namespace retort::architecture {

/// Tokens of the longest text that the positions of a model are made for: max_position_embeddings, with
/// `yarn` at least its factor times the original context.  Positions that are all `dynamic` follow a text of
/// any length, so there it is 2^31.
std::int64_t longest_context(const Config& config);

}  // namespace retort::architecture
