#pragma once
// Whether text has anything to learn or to measure.

#include "retort/data/document_reader.h"
#include "retort/data/sequence.h"

namespace retort::data {

/// Throws DataError that names the source when no document of the split has a target, or as check_packing().
/// It reads up to the first that has one, and at most 64 MiB of text.
void require_targets(const SourceOptions& source, Split split, const PackingOptions& packing, Targets targets,
                     const Encode& encode, const SpecialTokens& special);

}  // namespace retort::data
