#pragma once
// Texts that say one thing again and again, as models do that are drawn from too coldly.

#include <cstdint>
#include <span>

namespace retort::eval {

/// Whether the last ids are the same few again and again: they have a period of at most 64 tokens, which is
/// there at least three times and fills at least 24 tokens.
bool ends_in_loop(std::span<const std::int32_t> ids);

/// Share of the n-grams of a text that stand earlier in it, from 0 to 1; 0 for a text without any.  Source:
/// Welleck et al. 2019, arXiv 1908.04319, there called seq-rep-n.
double repeated_share(std::span<const std::int32_t> ids, std::size_t n);

}  // namespace retort::eval
