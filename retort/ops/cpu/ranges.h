#pragma once
// How matrices are divided for threads and caches.

#include <algorithm>
#include <cstdint>

namespace retort::ops::cpu {

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// Parts of at most `most` that make up `size`.
constexpr std::int64_t parts(std::int64_t size, std::int64_t most) {
  return (size + most - 1) / most;
}

/// The size of `count` parts of whole tiles that make up `size`, as even as these allow.
constexpr std::int64_t part_size(std::int64_t size, std::int64_t count, std::int64_t tile) {
  return parts(parts(size, count), tile) * tile;
}

/// Copies so many rows and columns; the rows of both lie apart by elements.
inline void copy_part(const float* from, std::int64_t from_row, float* to, std::int64_t to_row,
                      std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_row, columns, to + r * to_row);
}

}  // namespace retort::ops::cpu
