#pragma once
// Whether a source holds out as much as is asked of it, and what to set where it does not.

#include <cstdint>
#include <string>

#include "retort/data/options.h"

namespace retort::data {

/// Held-out documents with text, counted up to `most`; reads no further than that.  Throws as reading does.
std::int64_t held_out_documents(const SourceOptions& source, std::int64_t most);

/// Which key of the source holds out `wanted` documents at which value, for the end of a message: "set its
/// held_out.fraction to 0.027, which holds out 2 of its 39 documents".  Reads the source, at most 64 MiB of
/// it.
std::string held_out_advice(const SourceOptions& source, std::int64_t wanted);

}  // namespace retort::data
