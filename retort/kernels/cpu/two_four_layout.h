#pragma once
// How rows of 2:4 weights are packed, without their zeros.
//
// Packed rows are tiles of kTwoFourTileRows rows.  A tile has a piece for each kTwoFourPieceGroups groups of
// four neighbouring inputs.  A piece is kTwoFourWords words that say where the kept weights stood, and then
// the weights, [group, row, 2].  Rows and groups that are missing are zero.
//
//   by value: word 2 r + i has two bits for each group, the place of weight i of row r.
//   by pair:  word 8 (g % 2) + r has four bits for each two groups; those of group g are
//             8 (g % 2) + the place of the row's pair in kTwoFourPairs.

#include <cstdint>

namespace retort::kernels {

inline constexpr std::int64_t kTwoFourTileRows = 8, kTwoFourPieceGroups = 16, kTwoFourWords = 16;
inline constexpr std::int64_t kTwoFourGroupInputs = 4;
inline constexpr std::int64_t kTwoFourPieceInputs = kTwoFourGroupInputs * kTwoFourPieceGroups;
/// Of the weights in a piece, bytes: a line of the cache.
inline constexpr std::int64_t kTwoFourWeightsAt = kTwoFourWords * std::int64_t{sizeof(std::uint32_t)};

/// The pairs of places in a group; the last two are not used.
inline constexpr std::int64_t kTwoFourPairSlots = 8, kTwoFourUsedPairs = 6;
inline constexpr std::uint8_t kTwoFourPairs[kTwoFourPairSlots][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2},
                                                                     {1, 3}, {2, 3}, {2, 3}, {2, 3}};
static_assert(2 * kTwoFourPairSlots == kTwoFourWords, "a vector of words holds the pairs of two groups");

constexpr std::int64_t two_four_tiles(std::int64_t rows) {
  return (rows + kTwoFourTileRows - 1) / kTwoFourTileRows;
}
constexpr std::int64_t two_four_pieces(std::int64_t inputs) {
  return (inputs + kTwoFourPieceInputs - 1) / kTwoFourPieceInputs;
}
constexpr std::int64_t two_four_piece_bytes(std::int64_t item_bytes) {
  return kTwoFourWeightsAt + kTwoFourPieceGroups * kTwoFourTileRows * 2 * item_bytes;
}
constexpr std::int64_t two_four_tile_bytes(std::int64_t inputs, std::int64_t item_bytes) {
  return two_four_pieces(inputs) * two_four_piece_bytes(item_bytes);
}

}  // namespace retort::kernels
