#pragma once
// What a source holds, counted document by document, without a model's weights.

#include <cstdint>

#include "retort/base/json.h"
#include "retort/data/sequence.h"

namespace retort::data {

struct InspectionOptions {
  PackingOptions packing;
  std::int64_t documents = 0;  ///< the first ones are looked at; 0: all
  std::int64_t samples = 3;    ///< documents that are shown, of any place, the same ones every time
};

/// Counts of one source, its held-out part among them: {"name", "chat", "files", "documents", "held_out",
/// "bytes", "duplicates", "bad_lines", "first_bad", "lengths"} and, with tokens, {"tokens",
/// "bytes_per_token", "targets", "sequences", "too_long", "unanswered", "padding", "refused",
/// "first_refused", "samples"}.  `encode` may be empty: then lengths are bytes and nothing of tokens is
/// there.  Exact copies are found by a hash of 64 bits. Bad lines are counted, never an error.  Throws
/// DataError for files that cannot be read, and what `encode` throws but for a conversation that the template
/// refuses.  Memory: 24 bytes a document.
base::Json inspect(const SourceOptions& source, const Encode& encode, const SpecialTokens& special,
                   const InspectionOptions& options);

}  // namespace retort::data
