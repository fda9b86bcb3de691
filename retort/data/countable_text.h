#pragma once
// Whether text has anything to learn or to measure.

#include <cstdint>
#include <string>

#include "retort/data/document_reader.h"
#include "retort/data/sequence.h"

namespace retort::data {

/// Throws DataError that names the source when no document of the split has a target, or none that is whole
/// in a sequence where documents are not cut, or as check_packing() and tokenized().  It reads up to the
/// first that has one, and at most 64 MiB of text.
void require_targets(const SourceOptions& source, Split split, const PackingOptions& packing, Targets targets,
                     const Encode& encode, const SpecialTokens& special);

/// Throws DataError that names the source when its training part has fewer than `tokens` tokens that a stage
/// can use, in source.epochs passes.  It reads until there are so many.
void require_tokens(const SourceOptions& source, std::int64_t tokens, const PackingOptions& packing,
                    const Encode& encode, const SpecialTokens& special);

/// Documents that were passed over, by the reason.
struct PassedOver {
  std::int64_t too_long = 0, unanswered = 0, refused = 0;
};
/// What is said of a source that has nothing to learn or to measure.
std::string nothing_to_predict(const SourceOptions& source, const PackingOptions& packing,
                               const PassedOver& passed = {});

}  // namespace retort::data
