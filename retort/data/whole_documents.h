#pragma once
// Documents that are not cut, packed into sequences.

#include <cstdint>
#include <vector>

#include "retort/data/sequence.h"

namespace retort::data {

/// Best fit, the longest first: each document goes to the sequence with the least room that has enough, or
/// begins one (Ding et al. 2024).  Sequences have at most `length` tokens and are not padded; documents have
/// no more.  Time: n log n.
std::vector<Sequence> packed_whole(std::vector<DocumentTokens> documents, std::int64_t length,
                                   bool across_documents, Targets targets);

/// How many sequences that are, of documents with so many tokens.
std::int64_t sequences_of_whole(std::vector<std::int64_t> sizes, std::int64_t length);

/// Fills a sequence to `length` with the token `id`, as a document of its own without a target; returns how
/// many there are.
std::int64_t pad(Sequence& sequence, std::int64_t length, std::int32_t id);

}  // namespace retort::data
