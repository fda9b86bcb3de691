#pragma once
// Pieces of a text that do not depend on where it was cut into documents: runs of 48 bytes at every place, of
// which a hash of the run itself decides whether it is looked at.

#include <cstdint>
#include <string_view>
#include <vector>

namespace retort::data {

inline constexpr std::int64_t kRunBytes = 48;

/// Sorted hashes below `limit` of the different runs of a text in which white space of any length counts as
/// one space; `limit` is out of 2^64.  Time is linear.
std::vector<std::uint64_t> text_runs(std::string_view text, std::uint64_t limit);

}  // namespace retort::data
