#pragma once
// Asked to stop, a stage ends at once, and says what of it is kept.

#include <cstdint>

#include "retort/base/error.h"
#include "retort/record/observer.h"

namespace retort::record {

using StoppedError = base::ErrorOf<base::ExitCode::stopped>;

/// Throws StoppedError when the user asked to stop; `kept` is plural.
inline void stop_if_asked(const record::Observer& observer, const char* who, const char* kept) {
  base::require<StoppedError>(!observer.stop_requested(), who, ": stopped on request; ", kept,
                              " are kept, the same command again goes on there.");
}

/// The same in a block of a stage that keeps the blocks that it has finished.
inline void stop_if_asked(const record::Observer& observer, const char* who, std::int64_t block) {
  base::require<StoppedError>(!observer.stop_requested(), who, ": stopped on request in block ", block,
                              "; the blocks before it are kept, the same command again goes on there.");
}

}  // namespace retort::record
