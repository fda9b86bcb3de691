#pragma once
// Rows in pieces, so that the temporaries of a composition stay small however large its tensors are.

#include <algorithm>
#include <cstdint>

namespace retort::kernels::device {

/// Elements of a piece: enough to occupy an accelerator, 16 MiB in float32.
inline constexpr std::int64_t kPieceElements = std::int64_t{1} << 22;

/// Rows of a piece, at least one.
inline std::int64_t piece_rows(std::int64_t rows, std::int64_t columns) {
  return std::min(rows, std::max<std::int64_t>(1, kPieceElements / std::max<std::int64_t>(1, columns)));
}

/// Calls body(begin, count) for pieces of rows, in order.
template <typename Body>
void for_each_piece(std::int64_t rows, std::int64_t columns, Body body) {
  const auto step = piece_rows(rows, columns);
  for (std::int64_t begin = 0; begin < rows; begin += step) body(begin, std::min(step, rows - begin));
}

}  // namespace retort::kernels::device
