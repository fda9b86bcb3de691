#pragma once
// Blocks of 256 values, for quantise(): groups of 32 or 16 values have scales of six or eight bits, which one
// half for all scales.  The scale of a group is the best of some that are tried.

#include <cstdint>

namespace retort::io {

/// Each takes 256 finite values and writes a block; false where their scale is too large for a half.
bool write_q4_k(const float* in, std::uint8_t* out);
bool write_q5_k(const float* in, std::uint8_t* out);
bool write_q6_k(const float* in, std::uint8_t* out);

}  // namespace retort::io
