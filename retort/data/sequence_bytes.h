#pragma once
// Sequences as bytes: one rank reads and tokenises text, the others are sent what it made.

#include "retort/base/bytes.h"
#include "retort/data/sequence.h"

namespace retort::data {

/// Appends the sequence.
void put_bytes(std::string& bytes, const Sequence& sequence);
/// Throws InternalError for bytes that are none of a sequence.
void get_bytes(base::ByteReader& reader, Sequence& sequence);

/// Sequences one behind the other.
std::string to_bytes(const std::vector<Sequence>& sequences);
/// What to_bytes wrote; throws InternalError for other bytes.
std::vector<Sequence> sequences_of(std::string_view bytes);

}  // namespace retort::data
